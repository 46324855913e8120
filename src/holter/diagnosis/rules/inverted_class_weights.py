"""Class weights favour the frequent classes."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import last
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    TARGET_CLASSES,
    TARGET_LARGEST_CLASS_FRACTION,
    TARGET_WEIGHT_AWAY,
    TARGET_WEIGHT_SLOPE,
)


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(TARGET_WEIGHT_SLOPE,),
)
def inverted_class_weights(
    facts: Facts,
    *,
    slope: Annotated[float, "slope of log weight over log frequency that is reported"] = 0.5,
    share: Annotated[float, "share of the most frequent class, over an equal share"] = 1.5,
    mild: Annotated[float, "the same where weights are the odds of their labels"] = 1.2,
    tolerance: Annotated[float, "deviation of that slope from 1"] = 0.15,
    away: Annotated[float, "share of the labels whose weight adds to their imbalance"] = 0.5,
) -> Iterator[Verdict]:
    """Class weights favour the frequent classes.

    ## What it does
    Compares the class weights of a loss function (`weight`, `pos_weight`) with the class
    frequencies of the targets. It reports weights that grow with the frequency of their class, and
    a `pos_weight` of several labels that adds to the imbalance of most of them.

    ## Why it matters
    Class weights should strengthen rare classes. These do the opposite: they amplify the imbalance,
    and rare classes are predicted even less often than without weights.

    ## Example
    ```python
    nn.BCEWithLogitsLoss(pos_weight=positives / negatives)   # bad
    nn.BCEWithLogitsLoss(pos_weight=negatives / positives)   # good
    ```

    ## What to do
    Use the inverse of the frequency: `weight = len(labels) / (classes * labels.bincount())`.

    ## When it is wrong
    A task in which a false positive of a rare class costs much more than a miss.

    ## How to confirm
    - Compare the class weights with `labels.bincount()`.
    """
    for function, slopes in facts.run[TARGET_WEIGHT_SLOPE].items():
        known = slopes.values[np.isfinite(slopes.values)]
        if not len(known):
            yield inverted_class_weights.not_examined("all targets so far are of one class")
            continue
        found = float(known[-1])
        largest = last(facts, TARGET_LARGEST_CLASS_FRACTION, function) or 0.0
        equal = 1 / (last(facts, TARGET_CLASSES, function) or 2)
        turned = last(facts, TARGET_WEIGHT_AWAY, function)
        if turned is not None and turned <= away:
            which = f"{percent(turned)} of the labels" if turned else "no label"
            yield inverted_class_weights.clear(
                f"the weights of {function} add to the imbalance of {which}"
            )
            continue
        # Little imbalance says little of a weight, unless it is just the inverse of what balances.
        inverse = turned is not None and abs(found - 1) <= tolerance
        if found <= slope or largest < (mild if inverse else share) * equal:
            yield inverted_class_weights.clear(
                f"class weights of {function} scale as the frequency to the power {found:.2g}"
            )
            continue
        yield inverted_class_weights.finding(
            f"{function} weights frequent classes more than rare ones: weights scale as the"
            f" frequency to the power {found:.2g} (-1 balances classes), and the most frequent"
            f" class is {percent(largest)} of the targets",
            confidence=Confidence.LIKELY,
            onset=int(slopes.steps[0]),
            evidence=(
                Evidence(
                    TARGET_WEIGHT_SLOPE,
                    (int(slopes.steps[0]), int(slopes.steps[-1])),
                    f"{found:.2g}",
                    function,
                ),
            ),
            fix="invert the weights: `len(labels) / (classes * labels.bincount())`, or"
            " `pos_weight = negatives / positives`",
        )
