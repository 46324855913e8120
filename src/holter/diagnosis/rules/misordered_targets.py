"""Targets are flattened in a different order than predictions."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import PAIRING_ORDER, PAIRING_SHIFT


@rule(severity=Severity.ERROR, level=Level.ARCHITECTURE, needs=(PAIRING_ORDER, PAIRING_SHIFT))
def misordered_targets(facts: Facts) -> Iterator[Verdict]:
    """Targets are flattened in a different order than predictions.

    ## What it does
    Uses the experiment `pairing`, which looks for the inputs among the targets. It reports targets
    that are the next tokens of the sequences in time-major order while predictions are in
    sample-major order (or vice versa): a prediction is then compared with the token of a different
    sample and position.

    ## Why it matters
    Predictions and targets are unrelated, so the model learns only the token frequencies.

    ## Example
    ```python
    cross_entropy(logits.reshape(-1, classes), targets.t().reshape(-1))    # bad
    cross_entropy(logits.reshape(-1, classes), targets.reshape(-1))        # good
    ```

    ## What to do
    Flatten both in the same way, before or after `transpose`.

    ## When it is wrong
    No case is known: the targets match the inputs in one order only.

    ## How to confirm
    - Compare the target of sample 0, position 3 with the input of sample 0, position 4.
    """
    if bool(facts.run[PAIRING_ORDER][""].values[-1]):
        yield misordered_targets.clear("targets are in the order of the predictions")
        return
    yield misordered_targets.finding(
        "the targets are the tokens of the inputs, flattened in a different order (time first or"
        " samples first) than the predictions",
        confidence=Confidence.CERTAIN,
        onset=0,
        evidence=(Evidence(PAIRING_ORDER, (0, 0), "another order"),),
        fix="flatten predictions and targets in the same order:"
        " `cross_entropy(logits.flatten(0, 1), targets.flatten())` with both (batch, time)",
    )
