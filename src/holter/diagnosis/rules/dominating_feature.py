"""One feature is far larger than the features it is concatenated with."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import INPUT_JOINED_RATIO, INPUT_JOINED_STD, LOSS


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(LOSS, INPUT_JOINED_RATIO, INPUT_JOINED_STD),
    preview=True,
)
def dominating_feature(
    facts: Facts,
    *,
    large: Annotated[float, "standard deviation of a feature that is not scaled"] = 20.0,
    uneven: Annotated[float, "the same over the median of the features beside it"] = 50.0,
    left: Annotated[float, "share of the best constant prediction's loss that is left"] = 0.5,
) -> Iterator[Verdict]:
    """One feature is far larger than the features it is concatenated with.

    ## What it does
    Compares the columns of the inputs of linear layers that concatenate data with features of the
    model, such as numbers beside embeddings. It reports a column with a standard deviation far
    above that of the others. The finding is likely if the training failed, and a hint if more than
    half of the loss of the best constant prediction is left, or if that is unknown.

    ## Why it matters
    The layer's output follows the large feature alone: gradients for the others are small beside
    it, and a normalisation behind it removes them.

    ## Example
    ```python
    x = torch.cat([self.embedding(ids), days[:, None]], 1)                  # bad
    x = torch.cat([self.embedding(ids), (days[:, None] - mean) / std], 1)   # good
    ```

    ## What to do
    Standardise each number with its mean and standard deviation over the training set, or take the
    logarithm of counts, before it is concatenated.

    ## When it is wrong
    A batch norm behind the layer's input, or a feature that decides the target alone.

    ## How to confirm
    - Print `x.std(0)` of the concatenated tensor.
    - Divide the column by its standard deviation and compare the first 200 losses.
    """
    ratios = {
        name: read
        for name, read in facts.run[INPUT_JOINED_RATIO].items()
        if len(read) and np.isfinite(read.values).all()
    }
    if not ratios:
        yield dominating_feature.not_examined("no linear layer joins data with features")
        return
    worst = max(ratios, key=lambda layer: float(np.median(ratios[layer].values)))
    ratio = float(np.median(ratios[worst].values))
    std = float(np.median(readings(facts, INPUT_JOINED_STD, worst)))
    measured = (
        f"a column of the input of {worst} has a standard deviation of {std:.3g}, {ratio:.3g} times"
        " the median column"
    )
    if not (std > large and ratio > uneven):
        yield dominating_feature.clear(measured)
        return
    outcome = facts.run_outcome
    if not outcome.bad and outcome.gain is not None and outcome.gain > 1 - left:
        yield dominating_feature.harmless(f"{measured}; {outcome.says}")
        return
    span = (ratios[worst].first, ratios[worst].last)
    yield dominating_feature.finding(
        f"{measured}; {outcome.says}",
        confidence=Confidence.LIKELY if outcome.bad else Confidence.HINT,
        onset=ratios[worst].first,
        evidence=(
            Evidence(INPUT_JOINED_STD, span, f"{std:.3g}", worst),
            Evidence(INPUT_JOINED_RATIO, span, f"{ratio:.3g}", worst),
        ),
        fix="standardise the feature before `torch.cat`: `(x - x.mean()) / x.std()` of the training"
        " set",
    )
