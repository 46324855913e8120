"""A multi-label model returns probabilities that sum to 1."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.facts.handwritten import loss_name
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import EXCLUSIVE_DISTANCE, EXCLUSIVE_LABELS


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(EXCLUSIVE_DISTANCE, EXCLUSIVE_LABELS),
    preview=True,
)
def exclusive_probabilities(
    facts: Facts,
    *,
    min_steps: Annotated[int, "sampled steps needed"] = 8,
    rounding: Annotated[float, "largest distance of a sum of probabilities from 1"] = 1e-3,
    min_share: Annotated[float, "share of targets whose labels do not add up to 1"] = 0.05,
) -> Iterator[Verdict]:
    """A multi-label model returns probabilities that sum to 1.

    ## What it does
    Checks the probabilities and targets of `F.binary_cross_entropy` with several labels. It reports
    probabilities that sum to 1 in every row, like those of a softmax, while rows of targets have no
    label or several.

    ## Why it matters
    The model cannot predict two labels at once, nor none: a label that becomes more likely makes
    the others less likely. The loss has a floor far above 0, and recall stays low.

    ## Example
    ```python
    loss = F.binary_cross_entropy(logits.softmax(-1), labels)           # bad
    loss = F.binary_cross_entropy_with_logits(logits, labels)           # good
    ```

    ## What to do
    Use a sigmoid for each label: remove the softmax and use `F.binary_cross_entropy_with_logits`.

    ## When it is wrong
    Rows without a label that are masked out of the loss, while all others have exactly one.

    ## How to confirm
    - Print `probabilities.sum(-1)` and `labels.sum(-1)` of a batch.
    """
    for function in facts.run[EXCLUSIVE_DISTANCE]:
        distance = readings(facts, EXCLUSIVE_DISTANCE, function)
        labels = readings(facts, EXCLUSIVE_LABELS, function)
        if len(distance) < min_steps or len(labels) < min_steps:
            needed = f"{len(distance)} of the {min_steps} sampled steps needed"
            yield exclusive_probabilities.not_examined(needed)
            continue
        furthest, share = float(distance.max()), float(np.mean(labels))
        name = loss_name(facts, function)
        measured = f"sums of the probabilities in {name} are up to {furthest:.2g} from 1"
        if furthest > rounding:
            yield exclusive_probabilities.clear(measured)
            continue
        if share < min_share:
            yield exclusive_probabilities.clear(f"{measured}, and so are those of the labels")
            continue
        series = facts.run[EXCLUSIVE_DISTANCE][function]
        span = (series.first, series.last)
        yield exclusive_probabilities.finding(
            f"the probabilities in {name} sum to 1 in every row, like those of a softmax, but"
            f" {percent(share)} of the targets have no label or several",
            confidence=Confidence.LIKELY,
            onset=series.first,
            evidence=(
                Evidence(EXCLUSIVE_DISTANCE, span, f"at most {furthest:.2g}", function),
                Evidence(EXCLUSIVE_LABELS, span, f"{percent(share)} of the targets", function),
            ),
            fix="remove the softmax and use `F.binary_cross_entropy_with_logits(logits, labels)`",
        )
