"""Nearly all samples are of one class."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import measured, series
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import DATASET_CLASS, DATASET_CLASS_COUNT, DATASET_CLASS_WEIGHTS


@rule(severity=Severity.INFO, level=Level.DATA, needs=(DATASET_CLASS, DATASET_CLASS_COUNT))
def imbalanced_classes(
    facts: Facts, *, share: float = 0.95, noted: float = 0.8, min_samples: int = 100
) -> Iterator[Verdict]:
    """Nearly all samples are of one class.

    ## What it does
    Counts the classes of at least `min_samples` training samples, as often as the loader serves
    them. It speaks where more than `share` are of one class and the loss function is given no
    weights of classes; above `noted` it is noted as normal.

    ## Why it matters
    A model that always answers the most frequent class is then right nearly always, and training
    may stop there. Accuracy says nothing; batches without any of the rare classes teach nothing
    about them.

    ## What to do
    Look at precision and recall of the rare classes instead of accuracy. Weights of classes, a
    `WeightedRandomSampler` or a focal loss help some of the time; so does nothing but more data.

    ## When it is wrong
    Rare things are rare: an imbalance that is in the world is no fault of the data. Many models
    learn well from it, above all with many samples of the rare classes.

    ## How to confirm
    - Compare the accuracy with that of always answering the most frequent class.
    """
    kinds, counts = (
        series(facts.run, DATASET_CLASS, "train"),
        series(facts.run, DATASET_CLASS_COUNT, "train"),
    )
    total = float(counts.values.sum()) if counts is not None else 0.0
    if kinds is None or counts is None or total < min_samples:
        yield imbalanced_classes.not_examined(f"{total:.0f} of the {min_samples} samples needed")
        return
    if len(kinds) < 2:
        yield imbalanced_classes.normal(f"all targets are {kinds.values[0]:.0f}: they tell nothing")
        return
    top, least = int(counts.values.argmax()), int(counts.values.argmin())
    largest, smallest = counts.values[top] / total, counts.values[least] / total
    said = (
        f"{largest:.1%} of {total:.0f} samples are of class {kinds.values[top]:.0f}, {smallest:.1%}"
        f" of class {kinds.values[least]:.0f}, of {len(kinds)} classes"
    )
    if largest <= noted:
        yield imbalanced_classes.clear(said)
    elif largest <= share:
        yield imbalanced_classes.normal(said)
    elif measured(facts.run, DATASET_CLASS_WEIGHTS, "train"):
        yield imbalanced_classes.normal(f"{said}; the loss function is given weights of classes")
    else:
        yield imbalanced_classes.finding(
            said,
            confidence=Confidence.HINT,
            onset=0,
            evidence=(
                Evidence(
                    DATASET_CLASS_COUNT,
                    (0, len(kinds) - 1),
                    f"{counts.values[top]:.0f} of the largest, {counts.values[least]:.0f} of the"
                    " smallest",
                    "train",
                ),
            ),
            fix="look at precision and recall of the rare classes, and weight them if they fail",
        )
