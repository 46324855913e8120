"""The source hides the positions that a mask should keep."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "inverted mask": Mistake(
        "`{code}` uses `{subject}` with the opposite meaning: it hides the positions to attend to,"
        " and keeps the others",
        "invert the mask: `~({subject})`",
    ),
}


@rule(severity=Severity.ERROR, level=Level.ARCHITECTURE, needs=(LOSS,), preview=True)
def inverted_masks(facts: Facts) -> Iterator[Verdict]:
    """The source hides the positions that a mask should keep.

    ## What it does
    Reads the source of the script and of modules beside it. It compares how a mask is computed,
    such as `tokens != PAD`, with what its use expects: `masked_fill` and `key_padding_mask` hide
    what is True, `scaled_dot_product_attention` keeps it.

    ## Why it matters
    The model attends to padding, or to the future, and to nothing else. The loss stays near the
    best constant prediction, or falls for a wrong reason.

    ## Example
    ```python
    scores = scores.masked_fill(tokens != PAD, -1e9)  # bad
    scores = scores.masked_fill(tokens == PAD, -1e9)  # good
    ```

    ## What to do
    Invert the mask where it is used. Name masks by what True means: `is_padding`, `keep`.

    ## When it is wrong
    The value that is compared means real positions although it is named as padding.

    ## How to confirm
    - Change a padded position of an input in evaluation: the output must not change.
    """
    yield from concluded(inverted_masks, facts, _MISTAKES)
