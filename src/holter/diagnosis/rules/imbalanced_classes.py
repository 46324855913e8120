"""Nearly all samples belong to one class."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import measured, series, was_asked_for
from holter.diagnosis.facts.stream import failed
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import DATASET_CLASS, DATASET_CLASS_COUNT, DATASET_CLASS_WEIGHTS, LOSS


@exception
def weighted_classes(facts: Facts, shares: str) -> str | None:
    """The loss function uses class weights, so rare classes count."""
    if not measured(facts.run, DATASET_CLASS_WEIGHTS, "train"):
        return None
    return f"{shares}; the loss function uses class weights"


@rule(
    severity=Severity.INFO,
    level=Level.DATA,
    needs=(DATASET_CLASS, DATASET_CLASS_COUNT),
    exceptions=(weighted_classes,),
)
def imbalanced_classes(
    facts: Facts,
    *,
    share: Annotated[float, "share of the largest class that is reported"] = 0.95,
    noted: Annotated[float, "share of the largest class that is noted as normal"] = 0.8,
    min_samples: Annotated[int, "training samples needed"] = 100,
) -> Iterator[Verdict]:
    """Nearly all samples belong to one class.

    ## What it does
    Counts the classes of training samples, weighted by how often the loader serves them, and
    reports if nearly all belong to one class. Under `holter run` it reports this only if the
    training failed.

    ## Why it matters
    A model that always predicts the most frequent class is nearly always right, and training may
    get stuck there. Accuracy is meaningless, and most batches hold no sample of the rare classes.

    ## Example
    ```python
    criterion = nn.CrossEntropyLoss()                                     # bad
    criterion = nn.CrossEntropyLoss(weight=len(y) / (2 * y.bincount()))   # good
    ```

    ## What to do
    Measure precision and recall of the rare classes instead of accuracy. Class weights, a
    `WeightedRandomSampler` or a focal loss help in some cases; more samples of the rare classes
    help in most.

    ## When it is wrong
    The imbalance is real and not an error in the data. Many models learn well from it, especially
    with many samples of the rare classes.

    ## How to confirm
    - Compare the accuracy with that of always predicting the most frequent class.
    """
    labels, counts = (
        series(facts.run, DATASET_CLASS, "train"),
        series(facts.run, DATASET_CLASS_COUNT, "train"),
    )
    total = float(counts.values.sum()) if counts is not None else 0.0
    if labels is None or counts is None or total < min_samples:
        yield imbalanced_classes.not_examined(f"{total:.0f} of the {min_samples} samples needed")
        return
    if len(labels) < 2:
        yield imbalanced_classes.normal(
            f"all targets are {labels.values[0]:.0f}: there is nothing to learn"
        )
        return
    top, rarest = int(counts.values.argmax()), int(counts.values.argmin())
    largest = counts.values[top] / total
    shares = (
        f"{counts.values[top]:.0f} of {total:.0f} training samples belong to class"
        f" {labels.values[top]:.0f}, {counts.values[rarest]:.0f} of class"
        f" {labels.values[rarest]:.0f} ({len(labels)} classes)"
    )
    if largest <= noted:
        yield imbalanced_classes.clear(shares)
        return
    if largest <= share:
        yield imbalanced_classes.normal(shares)
        return
    excuse = imbalanced_classes.excused(facts, shares)
    if excuse is not None:
        yield excuse
        return
    if not was_asked_for(facts.run) and LOSS in facts.run and failed(facts) is None:
        yield imbalanced_classes.harmless(f"{shares}, but {facts.run_outcome.says}")
        return
    yield imbalanced_classes.finding(
        shares,
        confidence=Confidence.HINT,
        onset=0,
        evidence=(
            Evidence(
                DATASET_CLASS_COUNT,
                (0, len(labels) - 1),
                f"the largest class holds {percent(largest)} of the samples",
                "train",
            ),
        ),
        fix="measure precision and recall of the rare classes, and weight them if they are low",
    )
