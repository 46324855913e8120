"""Targets are flattened in another order than predictions."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import PAIRING_ORDER, PAIRING_SHIFT


@rule(severity=Severity.ERROR, level=Level.ARCHITECTURE, needs=(PAIRING_ORDER, PAIRING_SHIFT))
def misordered_targets(facts: Facts) -> Iterator[Verdict]:
    """Targets are flattened in another order than predictions.

    ## What it does
    Reads the experiment pairing, which looks for the inputs among the targets: where these are
    the next tokens of each sequence if they are read time by time, while predictions are in the
    order sample by sample (or the other way round), a prediction is compared with the token of
    another sample and another position.

    ## Why it matters
    Predictions and targets are unrelated, so the model learns how frequent the tokens are and
    nothing else.

    ## Example
    ```python
    cross_entropy(logits.reshape(-1, classes), targets.t().reshape(-1))    # bad
    cross_entropy(logits.reshape(-1, classes), targets.reshape(-1))        # good
    ```

    ## What to do
    Flatten both in the same way, before or after `transpose`.

    ## When it is wrong
    Never where it is reported: the targets agree with the inputs in one order only.

    ## How to confirm
    - Compare the target of sample 0, position 3 with the input of sample 0, position 4.
    """
    if bool(facts.run[PAIRING_ORDER][""].values[-1]):
        yield misordered_targets.clear("targets are in the order of the predictions")
        return
    yield misordered_targets.finding(
        "the targets are the tokens of the inputs, flattened in another order (time first or"
        " samples first) than the predictions",
        confidence=Confidence.CERTAIN,
        onset=0,
        evidence=(Evidence(PAIRING_ORDER, (0, 0), "another order"),),
        fix="flatten predictions and targets in the same order:"
        " `cross_entropy(logits.flatten(0, 1), targets.flatten())` with both (batch, time)",
    )
