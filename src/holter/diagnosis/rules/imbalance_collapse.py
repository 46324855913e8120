"""The model predicts the most frequent class for nearly every input."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import last
from holter.diagnosis.facts.measured import Measured
from holter.diagnosis.facts.metrics import Classification, auroc, classification
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    TARGET_LARGEST_CLASS_FRACTION,
    VAL_ACCURACY,
    VAL_BALANCED_ACCURACY,
)

_RANKED = 0.65  # area under the ROC curve of scores that tell the rare class apart
_TOLD = 0.05  # share of the entropy of the classes that the predictions explain


@exception
def ranked_scores(facts: Facts, measured: Measured, found: Classification) -> str | None:  # noqa: ARG001
    """The scores distinguish the rare classes; only the threshold is too high."""
    what = measured.last
    if what.scores is not None:
        area = auroc(what.scores)
        if area is None or area < _RANKED:
            return None
        return f"the area under the ROC curve is {area:.2f}: choose a threshold other than 0.5"
    support = np.array([one.support for one in found.each if one.support], float)
    losses = np.array([one.loss for one in found.each if one.support])
    constant = float(-(support * np.log(support / found.targets)).sum() / found.targets)
    gain = 1 - float((support * losses).sum() / found.targets) / constant
    if not gain >= _TOLD:
        return None
    return (
        f"the validation loss is {percent(gain)} below that of predicting the class frequencies:"
        " the scores distinguish rare classes, but never predict them"
    )


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(VAL_BALANCED_ACCURACY,),
    exceptions=(ranked_scores,),
)
def imbalance_collapse(
    facts: Facts,
    *,
    min_steps: Annotated[int, "training steps before the pass"] = 50,
    min_rare: Annotated[int, "targets of classes other than the most frequent one"] = 20,
    min_majority: Annotated[float, "share of the most frequent class"] = 0.6,
    min_predicted: Annotated[float, "share of the predictions that are of this class"] = 0.98,
    max_gain: Annotated[float, "balanced accuracy above chance, as a share of the rest"] = 0.05,
) -> Iterator[Verdict]:
    """The model predicts the most frequent class for nearly every input.

    ## What it does
    Compares accuracy and balanced accuracy on the last validation pass. It reports if nearly all
    predictions are the most frequent class, so that the accuracy equals its share and the balanced
    accuracy is at chance, although other classes occur among the targets.

    ## Why it matters
    The accuracy looks good but is meaningless: the rare classes, usually the reason for building
    the model, are never found.

    ## Example
    ```python
    criterion = nn.CrossEntropyLoss()                                         # bad
    criterion = nn.CrossEntropyLoss(weight=len(y) / (k * y.bincount()))       # good
    ```

    ## What to do
    Report balanced accuracy, F1 or average precision. Give rare classes more weight, or sample them
    more often with a `WeightedRandomSampler`; then check that the recall of each class rises.

    ## When it is wrong
    Inputs that do not distinguish the classes: the most frequent class is then the best prediction.
    A training that has only just begun.

    ## How to confirm
    - Train again with class weights: the balanced accuracy must rise above chance.
    - `holter try evaluate SCRIPT`: recall of each class, and the area under the ROC curve.
    """
    measured = facts.measured_validation
    if isinstance(measured, str):
        yield imbalance_collapse.not_examined(measured)
        return
    found, step = classification(measured.last), measured.passes[-1].step
    if found is None or found.classes < 2:
        yield imbalance_collapse.not_examined("the validation targets hold fewer than two classes")
        return
    top = max(found.each, key=lambda one: one.predicted)
    gain = (found.balanced - found.chance) / (1 - found.chance)
    says = (
        f"accuracy {percent(found.accuracy)}, balanced accuracy {percent(found.balanced)}"
        f" (chance {percent(found.chance)})"
    )
    is_collapsed = (
        top.predicted >= min_predicted * found.targets
        and top.support == found.largest
        and gain <= max_gain
    )
    if found.majority < min_majority or not is_collapsed:
        yield imbalance_collapse.clear(says)
        return
    rare = found.targets - found.largest
    if rare < min_rare or step < min_steps:
        yield imbalance_collapse.not_examined(
            f"{rare} of the {min_rare} targets of rare classes, {step} of the {min_steps} steps"
            " needed"
        )
        return
    excuse = imbalance_collapse.excused(facts, measured, found)
    if excuse is not None:
        yield excuse
        return
    yield imbalance_collapse.finding(
        f"{percent(top.predicted / found.targets)} of the predictions are class {top.label}:"
        f" {says}",
        confidence=_confidence(facts, measured, found),
        onset=_onset(facts, measured, found, max_gain),
        evidence=_evidence(facts, measured, found, rare),
        fix="weight the classes: `nn.CrossEntropyLoss(weight=len(y) / (classes * y.bincount()))`,"
        " and judge by balanced accuracy or F1",
    )


def _confidence(facts: Facts, measured: Measured, found: Classification) -> Confidence:
    """A hint if the training data are not known to be as unbalanced."""
    trained = last(facts, TARGET_LARGEST_CLASS_FRACTION, measured.function)
    is_same = trained is not None and abs(trained - found.majority) < 0.15
    return Confidence.LIKELY if is_same else Confidence.HINT


def _onset(facts: Facts, measured: Measured, found: Classification, max_gain: float) -> int:
    """Return the step of the first of the last passes without a better one between."""
    series = facts.run[VAL_BALANCED_ACCURACY].get(measured.owner)
    if series is None:
        return measured.passes[-1].step
    better = (series.values - found.chance) / (1 - found.chance) > max_gain
    after = series.steps[np.flatnonzero(better)[-1] + 1 :] if better.any() else series.steps
    return int(after[0]) if len(after) else measured.passes[-1].step


def _evidence(
    facts: Facts, measured: Measured, found: Classification, rare: int
) -> Iterator[Evidence]:
    span = measured.passes[0].step, measured.passes[-1].step
    recalls = (
        f"{percent(found.balanced)} over {found.classes} classes; {rare} of {found.targets}"
        " targets belong to classes other than the most frequent one"
    )
    yield Evidence(VAL_BALANCED_ACCURACY, span, recalls, measured.owner)
    if VAL_ACCURACY in facts.run and measured.owner in facts.run[VAL_ACCURACY]:
        says = f"{percent(found.accuracy)}; the most frequent class is {percent(found.majority)}"
        yield Evidence(VAL_ACCURACY, span, says, measured.owner)
