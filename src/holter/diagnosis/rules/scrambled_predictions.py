"""Each prediction in the loss mixes scores of different positions."""

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
    """Each prediction in the loss mixes scores of different positions.

    ## What it does
    Uses the experiment `pairing`: it looks up the scores of each prediction passed to a
    cross-entropy in the model output. Reports if the numbers are the same and in the same order,
    but grouped into predictions differently.

    ## Why it matters
    `view` and `reshape` only regroup the numbers; they do not swap dimensions, such as those of
    logits (batch, time, classes). A prediction then consists of scores of different positions, and
    the loss optimises the wrong objective. It may even fall.

    ## Example
    ```python
    cross_entropy(logits.view(batch, classes, time), targets)    # bad
    cross_entropy(logits.transpose(1, 2), targets)               # good
    ```

    ## What to do
    Swap dimensions with `transpose` or `permute`, or flatten all but the classes:
    `cross_entropy(logits.flatten(0, 1), targets.flatten())`.

    ## When it is wrong
    The rule searches for equal numbers, so it cannot judge a model that returns only equal scores.

    ## How to confirm
    - Compare `logits[0, 3]` with the scores of sample 0 at position 3 in the loss input.
    """
    share = float(facts.run[PAIRING_ROWS][""].values[-1])
    if share >= min_share:
        yield scrambled_predictions.clear("every prediction is one row of the model output")
        return
    yield scrambled_predictions.finding(
        f"the loss receives the model output regrouped: {portion(share)} of its predictions"
        " consist of the scores of a single position",
        confidence=Confidence.CERTAIN,
        onset=0,
        evidence=(Evidence(PAIRING_ROWS, (0, 0), f"{portion(share)} of the predictions"),),
        fix="swap dimensions with `transpose` or `permute`, not with `view` or `reshape`:"
        " `cross_entropy(logits.transpose(1, 2), targets)`",
    )
