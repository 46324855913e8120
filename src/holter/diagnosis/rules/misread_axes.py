"""The source takes one axis of a tensor for another."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "sequence first": Mistake(
        "`{code}` takes the last sample of the batch for the last position: `{subject}` has"
        " no `batch_first=True`, so that its output is (time, batch, features)",
        "pass `batch_first=True` to `{subject}`, or index the first axis: `out[-1]`",
    ),
    "softmax over queries": Mistake(
        "`{code}` normalises `{subject}` over the queries; the weights of one query do not"
        " sum to 1",
        "normalise over the keys: `softmax(dim=-1)`",
    ),
    "argmax of all": Mistake(
        "`{code}`: `{subject}` is one index into the whole batch, which is compared with"
        " every label",
        "take the maximum over the classes: `argmax(dim=1)`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.ARCHITECTURE, needs=(LOSS,), preview=True)
def misread_axes(facts: Facts) -> Iterator[Verdict]:
    """The source takes one axis of a tensor for another.

    ## What it does
    Reads the source of the script and of modules beside it. It reports a recurrent layer without
    `batch_first` whose output is indexed as `out[:, -1]`, attention weights that are normalised
    over the queries, and an `argmax()` over a whole batch that is compared with its labels.

    ## Why it matters
    Nothing fails, because the sizes fit. The model sees other samples instead of other positions,
    attention cannot choose a position, or an accuracy is printed that means nothing.

    ## Example
    ```python
    attention = (q @ k.mT).softmax(dim=-2) @ v  # bad
    attention = (q @ k.mT).softmax(dim=-1) @ v  # good
    ```

    ## What to do
    Name the axis that is meant: `batch_first=True`, `softmax(dim=-1)` over keys, `argmax(dim=1)`
    over classes.

    ## When it is wrong
    Scores are laid out as (keys, queries). Batches have one sample.

    ## How to confirm
    - Change one sample of a batch and check that the outputs of the others stay the same.
    """
    yield from concluded(misread_axes, facts, _MISTAKES)
