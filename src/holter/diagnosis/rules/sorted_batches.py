"""Each batch holds samples of one or a few classes only."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import last, readings
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.rule import rule
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

_LEAST = 0.3  # nats that a batch should have to say anything
_EVEN = 0.01  # nats that batches with as many samples of each of their classes differ by


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(
        TARGET_BATCH_ENTROPY,
        TARGET_ENTROPY,
    ),
)
def sorted_batches(facts: Facts, *, share: float = 0.4, min_steps: int = 20) -> Iterator[Verdict]:
    """Each batch holds samples of one or a few classes only.

    ## What it does
    Compares the entropy of the labels within a batch with that of all labels seen, less what a
    batch of that size lacks by chance. It speaks where batches have less than `share` of what they
    should have, in the mean of at least `min_steps` sampled steps. It is likely where a batch of
    the loader has one label for each sample, and a hint where its size is not known or where the
    whole first pass over the data had few classes as well, as in continual learning. Batches that
    all hold as many classes, each as often, were chosen by a sampler: that is clear.

    ## Why it matters
    A model that sees one class at a time learns to answer that class and forgets the others. The
    loss swings with the order of the data; validation predicts the class that came last.

    ## What to do
    Shuffle: `DataLoader(..., shuffle=True)`, or shuffle the list of files once before splitting.

    ## When it is wrong
    Few-shot, metric and continual learning choose classes for a batch on purpose, as do samplers
    that group by class; most of it is told by the above. Trainings with several optimizers, where
    one side may be shown one label only, are not looked at.

    ## How to confirm
    - Print the labels of three batches: `next(iter(loader))[1].unique(return_counts=True)`.
    """
    judged = facts.curve if LOSS in facts.run else None
    if isinstance(judged, str):
        yield sorted_batches.not_examined(judged)
        return
    for owner in facts.run[TARGET_BATCH_ENTROPY]:
        batch = readings(facts, TARGET_BATCH_ENTROPY, owner)
        whole, classes = last(facts, TARGET_ENTROPY, owner), last(facts, TARGET_CLASSES, owner)
        count = readings(facts, TARGET_COUNT, owner)
        count = count[count > 0]
        if not len(batch) or whole is None or not len(count):
            continue
        usual, size = float(batch.mean()), float(np.median(count))
        kinds = classes if classes is not None else 2.0  # losses of single logits
        expected = whole - (kinds - 1) / (2 * size)  # what a batch lacks by chance
        said = (
            f"a batch of {size:.0f} has a label entropy of {usual:.2f} in the mean; all labels have"
            f" {whole:.2f}"
        )
        if expected < _LEAST:
            yield sorted_batches.not_examined(f"{said}: too little to tell")
        elif usual >= share * expected:
            yield sorted_batches.clear(said)
        elif _chosen(batch):
            yield sorted_batches.clear(
                f"{said}, but each holds {np.exp(usual):.0f} classes, each as often: a sampler's"
                " choice"
            )
        elif len(batch) < min_steps:
            yield sorted_batches.not_examined(f"{len(batch)} of the {min_steps} steps needed")
        elif (each := _labels_a_sample(facts, size)) is not None and not 0.5 < each < 2:
            yield sorted_batches.clear(f"{said}, but a sample has {each:.0f} labels")
        else:
            series = facts.run[TARGET_BATCH_ENTROPY][owner]
            within = _of_first_pass(facts, owner)
            apart = within is not None and usual >= share * within
            span = (series.first, series.last)
            yield sorted_batches.finding(
                f"{said}: batches hold one class or few, {np.exp(usual):.1f} instead of about"
                f" {np.exp(expected):.1f}",
                confidence=Confidence.HINT if each is None or apart else Confidence.LIKELY,
                onset=series.first,
                evidence=(
                    Evidence(
                        TARGET_BATCH_ENTROPY,
                        span,
                        f"{usual:.2f} nats in the mean of {len(batch)} steps; {expected:.2f}"
                        " expected",
                        owner,
                    ),
                    Evidence(TARGET_ENTROPY, span, f"{whole:.2f} nats over all labels", owner),
                ),
                fix="shuffle the training data: DataLoader(..., shuffle=True)",
            )


def _chosen(batch: Values) -> bool:
    """Whether nearly all batches hold the same number of classes, two or more, each as often."""
    classes = np.exp(np.median(batch))
    even = abs(np.log(max(round(classes), 1)) - batch) < _EVEN
    return bool(classes > 1.5 and even.mean() > 0.9)


def _of_first_pass(facts: Facts, function: str) -> float | None:
    """The entropy of the labels that the first pass over the data had; None where it is unknown."""
    passes = facts.run.events_of(PassBegan)
    if not passes or DATA_BATCH_SIZE not in facts.run:
        return None
    loader = passes[0].what.loader
    ends = [event.step for event in passes[1:] if event.what.loader == loader]
    if not ends and (batches := facts.run[DATA_BATCH_SIZE].get(loader)):
        ends = [batches.last]
    if not ends:
        return None
    known = facts.run[TARGET_ENTROPY][function]
    before = known.values[(known.steps <= ends[0]) & np.isfinite(known.values)]
    return float(before[-1]) if len(before) else None


def _labels_a_sample(facts: Facts, labels: float) -> float | None:
    """How many labels a sample of the loader has; None where no size of a batch is known."""
    sizes = [
        float(np.median(each.values))
        for each in (facts.run[DATA_BATCH_SIZE].values() if DATA_BATCH_SIZE in facts.run else ())
        if len(each)
    ]
    ratios = [labels / size for size in sizes if size > 0]
    return min(ratios, key=lambda ratio: abs(np.log(ratio)), default=None)
