"""Each batch holds samples of only one or a few classes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import last, readings
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.rule import exception, rule
from holter.record.events import PassBegan
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    DATA_BATCH_SIZE,
    LOSS,
    TARGET_BATCH_ENTROPY,
    TARGET_CLASSES,
    TARGET_COUNT,
    TARGET_ENTROPY,
)

_EVEN = 0.01  # nats by which batches with equally many samples of each class may differ


@dataclass(frozen=True, slots=True)
class LabelEntropy:
    """The entropy of the labels of batches, of all labels, and of a shuffled batch, in nats."""

    batches: Values
    overall: float
    expected: float
    size: float  # labels in a batch
    per_sample: float | None  # labels of one sample of the loader; None if its size is unknown

    @property
    def mean(self) -> float:
        """The mean entropy within a batch."""
        return float(self.batches.mean())

    def __str__(self) -> str:
        return (
            f"mean label entropy is {self.mean:.2f} nats within a batch of {self.size:.0f} and"
            f" {self.overall:.2f} over all labels"
        )


@exception
def adversaries(facts: Facts, labels: LabelEntropy, _: float) -> str | None:
    """In adversarial training one side sees real and generated samples alternately."""
    losses = facts.run[LOSS].values() if LOSS in facts.run else ()
    count = sum(len(loss) > 0 for loss in losses)
    return f"{labels}; {count} optimizers have a loss each" if count > 1 else None


@exception
def class_sampler(_: Facts, labels: LabelEntropy, __: float) -> str | None:
    """A sampler draws equal numbers from a few classes, as in metric or few-shot learning."""
    classes = np.exp(np.median(labels.batches))
    even = np.abs(np.log(max(round(classes), 1)) - labels.batches) < _EVEN
    if not (classes > 1.5 and even.mean() > 0.9):
        return None
    return f"{labels}; batches hold {classes:.0f} classes, each equally often"


@exception
def many_labels_per_sample(_: Facts, labels: LabelEntropy, most: float) -> str | None:
    """The labels of one sample, such as pixels or tokens, are similar even in shuffled data."""
    if labels.per_sample is None or labels.per_sample < most:
        return None
    return f"{labels}; a sample has {labels.per_sample:.0f} labels"


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(
        TARGET_BATCH_ENTROPY,
        TARGET_ENTROPY,
    ),
    exceptions=(adversaries, class_sampler, many_labels_per_sample),
)
def sorted_batches(
    facts: Facts,
    *,
    share: Annotated[float, "label entropy of batches, relative to shuffled ones"] = 0.4,
    min_steps: Annotated[int, "sampled steps needed"] = 20,
    min_entropy: Annotated[float, "label entropy of shuffled batches needed, in nats"] = 0.3,
    many_labels: Annotated[float, "labels of one sample that are many"] = 2.0,
) -> Iterator[Verdict]:
    """Each batch holds samples of only one or a few classes.

    ## What it does
    Compares the mean label entropy within a batch with that of all labels, corrected for the batch
    size, and reports a far lower one. It is a hint if the loader serves a different number of
    samples than there are labels, or if the whole first pass over the data has few classes as well,
    as in continual learning.

    ## Why it matters
    A model that sees one class at a time learns to predict that class and forgets the others. The
    loss oscillates with the order of the data; in validation the model predicts the most recent
    class.

    ## Example
    ```python
    loader = DataLoader(dataset, batch_size=64)                 # bad
    loader = DataLoader(dataset, batch_size=64, shuffle=True)   # good
    ```

    ## What to do
    Shuffle: `DataLoader(..., shuffle=True)`, or shuffle the list of files once before splitting.

    ## When it is wrong
    Continual learning, and samplers that group by class on purpose.

    ## How to confirm
    - Print the labels of three batches: `next(iter(loader))[1].unique(return_counts=True)`.
    """
    for function in facts.run[TARGET_BATCH_ENTROPY]:
        labels = _labels(facts, function)
        if labels is None:
            continue
        if labels.expected < min_entropy:
            yield sorted_batches.not_examined(
                f"{labels}; shuffled batches are expected to have {max(labels.expected, 0):.2f}"
            )
            continue
        if labels.mean >= share * labels.expected:
            yield sorted_batches.clear(str(labels))
            continue
        if len(labels.batches) < min_steps:
            yield sorted_batches.not_examined(
                f"{len(labels.batches)} of the {min_steps} steps needed"
            )
            continue
        excuse = sorted_batches.excused(facts, labels, many_labels)
        if excuse is not None:
            yield excuse
            continue
        first_pass = _first_pass_entropy(facts, function)
        task = first_pass is not None and labels.mean >= share * first_pass
        matched = labels.per_sample is not None and labels.per_sample > 1 / many_labels
        series = facts.run[TARGET_BATCH_ENTROPY][function]
        span = (series.first, series.last)
        yield sorted_batches.finding(
            f"{labels}: a batch holds {np.exp(labels.mean):.2g} classes instead of about"
            f" {np.exp(labels.expected):.2g}",
            confidence=Confidence.LIKELY if matched and not task else Confidence.HINT,
            onset=series.first,
            evidence=(
                Evidence(
                    TARGET_BATCH_ENTROPY,
                    span,
                    f"mean {labels.mean:.2f} nats over {len(labels.batches)} steps;"
                    f" {labels.expected:.2f} expected",
                    function,
                ),
                Evidence(
                    TARGET_ENTROPY, span, f"{labels.overall:.2f} nats over all labels", function
                ),
            ),
            fix="shuffle the training data: `DataLoader(..., shuffle=True)`",
        )


def _labels(facts: Facts, function: str) -> LabelEntropy | None:
    batches = readings(facts, TARGET_BATCH_ENTROPY, function)
    overall = last(facts, TARGET_ENTROPY, function)
    counts = readings(facts, TARGET_COUNT, function)
    counts = counts[counts > 0]
    if not len(batches) or overall is None or not len(counts):
        return None
    size = float(np.median(counts))
    classes = last(facts, TARGET_CLASSES, function) or 2.0  # 2 for losses of single logits
    expected = overall - (classes - 1) / (2 * size)  # what a batch lacks by chance
    return LabelEntropy(batches, overall, expected, size, _labels_per_sample(facts, size))


def _labels_per_sample(facts: Facts, labels: float) -> float | None:
    """Return how many labels a sample of the loader has, or None if no batch size is known."""
    tables = facts.run[DATA_BATCH_SIZE].values() if DATA_BATCH_SIZE in facts.run else ()
    sizes = [float(np.median(series.values)) for series in tables if len(series)]
    ratios = [labels / size for size in sizes if size > 0]
    return min(ratios, key=lambda ratio: abs(np.log(ratio)), default=None)


def _first_pass_entropy(facts: Facts, function: str) -> float | None:
    """Return the entropy of the labels of the first pass over the data, or None if unknown."""
    passes = facts.run.events_of(PassBegan)
    if not passes or DATA_BATCH_SIZE not in facts.run:
        return None
    loader = passes[0].what.loader
    ends = [event.step for event in passes[1:] if event.what.loader == loader]
    if not ends and (batches := facts.run[DATA_BATCH_SIZE].get(loader)):
        ends = [batches.last]
    if not ends:
        return None
    series = facts.run[TARGET_ENTROPY][function]
    before = series.values[(series.steps <= ends[0]) & np.isfinite(series.values)]
    return float(before[-1]) if len(before) else None
