"""The source masks the wrong positions, or does not apply a mask."""

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
    "row without keys": Mistake(
        "`{code}` hides each position from itself: the first one has no key left, and a softmax"
        " over only -inf is NaN",
        "let each position see itself: keep `tril()` of ones, or hide `triu(diagonal=1)`",
    ),
    "padding alone": Mistake(
        "`{code}` is a mean over the positions where `{subject}` is true: only over the padding",
        "invert the mask in both sums: `~({subject})`",
    ),
    "zero before softmax": Mistake(
        "`{code}` fills hidden positions with 0 before a softmax: e ** 0 is 1, so they keep a share"
        " of the attention",
        "fill with minus infinity: `scores.masked_fill({subject}, float('-inf'))`",
    ),
    "zero before minimum": Mistake(
        "`{code}` fills excluded elements with 0 before a minimum: the minimum is always 0",
        "fill with infinity: `distances.masked_fill({subject}, float('inf'))`",
    ),
    "off diagonal": Mistake(
        "`{code}` has a causal mask that is one diagonal too wide: each position sees the next one",
        "keep `tril()` of ones, or hide `triu(diagonal=1)`",
    ),
    "mask after softmax": Mistake(
        "`{code}` hides positions after the softmax: the remaining weights do not sum to 1",
        "mask the scores: `scores.masked_fill(hidden, float('-inf'))` before the softmax",
    ),
    "no causal mask": Mistake(
        "`{code}` has no `{subject}`: each position sees the tokens that it predicts",
        "pass a causal mask: `generate_square_subsequent_mask(T)`, `is_causal=True`, or hide"
        " `triu(diagonal=1)` of the scores",
    ),
    "unread mask": Mistake(
        "`{code}`: the mask `{subject}` is never used, so the positions it should hide are"
        " attended to",
        "use the mask in the attention: `scores.masked_fill(~{subject}, float('-inf'))`",
    ),
    "dropped mask of batch": Mistake(
        "`{code}` omits the `{subject}` of padded batches: the model attends to padding, and"
        " predictions depend on the longest text of a batch",
        "pass the whole batch: `model(**batch)`",
    ),
    "dropped mask": Mistake(
        "`{code}` pads texts, but only `input_ids` reach the model: without `{subject}` it"
        " attends to padding",
        "pass the whole encoding on: `model(**encoding)`",
    ),
    "mask on one side": Mistake(
        "`{code}` masks only one of two distributions; the softmax of `{subject}` assigns"
        " probability to padding",
        "mask both: `{subject}.masked_fill(~mask, float('-inf'))`",
    ),
    "unread exclusion": Mistake(
        "`{code}`: `{subject}` is never used, so items that should be excluded are drawn or ranked",
        "exclude them: `scores.masked_fill({subject}, float('-inf'))`, or draw again where"
        " `{subject}` is true",
    ),
    "unread padding": Mistake(
        "`{code}`: `{subject}` is never used, so padding is counted",
        "weight by it: `(values * {subject}).sum() / {subject}.sum()`",
    ),
}


@rule(severity=Severity.ERROR, level=Level.ARCHITECTURE, needs=(LOSS,), preview=True)
def inverted_masks(facts: Facts) -> Iterator[Verdict]:
    """The source masks the wrong positions, or does not apply a mask.

    ## What it does
    Reads the source of the script and of the modules next to it. It compares how a mask is
    computed, such as `tokens != PAD`, with what its use expects: `masked_fill` and
    `key_padding_mask` hide what is True, `scaled_dot_product_attention` keeps it. It also reports
    causal masks that are one diagonal too wide or too narrow, or missing, means over the padding
    alone, masks that fill with 0 before a softmax or a minimum, masks applied after the softmax,
    and masks that are never used.

    ## Why it matters
    The model attends to padding or to future positions. The loss stays near the best constant
    prediction, or falls for the wrong reason.

    ## Example
    ```python
    scores = scores.masked_fill(tokens != PAD, -1e9)  # bad
    scores = scores.masked_fill(tokens == PAD, -1e9)  # good
    ```

    ## What to do
    Invert the mask where it is used. Name masks after what True means: `is_padding`, `keep`.

    ## When it is wrong
    The compared value marks real positions although it is named like padding.

    ## How to confirm
    - Change a padded position of an input in eval mode: the output must not change.
    """
    yield from concluded(inverted_masks, facts, _MISTAKES)
