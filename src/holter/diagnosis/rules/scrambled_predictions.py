"""The loss is given scores that belong to different places."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import portion
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import PAIRING_ROWS


@rule(severity=Severity.ERROR, level=Level.ARCHITECTURE, needs=(PAIRING_ROWS,))
def scrambled_predictions(
    facts: Facts,
    *,
    min_share: Annotated[float, "share of the predictions whose scores belong together"] = 0.99,
) -> Iterator[Verdict]:
    """The loss is given scores that belong to different places.

    ## What it does
    Reads the experiment pairing: the scores of each prediction that a cross-entropy is given are
    looked up in what the model returned. Reports when the numbers are the same ones in the same
    order, but divided into predictions in another way.

    ## Why it matters
    `view` and `reshape` only divide the numbers in another way, they do not exchange dimensions,
    such as those of logits (batch, time, classes). One prediction
    then consists of scores of different positions, so the loss trains the model for something else.
    It may even fall.

    ## Example
    ```python
    cross_entropy(logits.view(batch, classes, time), targets)    # bad
    cross_entropy(logits.transpose(1, 2), targets)               # good
    ```

    ## What to do
    Exchange dimensions with `transpose` or `permute`, or flatten all but the classes:
    `cross_entropy(logits.flatten(0, 1), targets.flatten())`.

    ## When it is wrong
    It searches for equal numbers, so it cannot judge a model that returns only equal scores.

    ## How to confirm
    - Compare `logits[0, 3]` with the scores of sample 0 at position 3 in what the loss is given.
    """
    share = float(facts.run[PAIRING_ROWS][""].values[-1])
    if share >= min_share:
        yield scrambled_predictions.clear("every prediction is one row of what the model returned")
        return
    yield scrambled_predictions.finding(
        f"the loss gets the numbers that the model returned, but {portion(share)} of its"
        " predictions consist of the scores of one place",
        confidence=Confidence.CERTAIN,
        onset=0,
        evidence=(Evidence(PAIRING_ROWS, (0, 0), f"{portion(share)} of the predictions"),),
        fix="exchange dimensions with `transpose` or `permute`, not with `view` or `reshape`:"
        " `cross_entropy(logits.transpose(1, 2), targets)`",
    )
