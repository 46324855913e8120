"""Each batch holds samples of one or a few classes only."""

from collections.abc import Iterator

import numpy as np

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.rules._anchors import last, readings
from holter.run import Run
from holter.signals import (
    DATA_BATCH_SIZE,
    TARGET_BATCH_ENTROPY,
    TARGET_CLASSES,
    TARGET_COUNT,
    TARGET_ENTROPY,
)

_LEAST = 0.3  # nats that a batch should have to say anything


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(
        TARGET_BATCH_ENTROPY,
        TARGET_ENTROPY,
    ),
    explains=(
        "flat-loss",
        "loss-at-constant-predictor",
        "loss-plateau",
        "underfitting",
        "diverging-loss",
        "oscillating-loss",
        "loss-spike",
        "exploding-gradients",
        "exploding-weights",
        "nonfinite-loss",
        "nonfinite-gradient",
        "nonfinite-weights",
        "oscillating-gradients",
        "validation-mismatch",
        "erratic-validation",
        "loss-accuracy-parting",
        "huge-updates",
        "constant-validation",
        "dead-units",
    ),
)
def sorted_batches(run: Run, *, share: float = 0.4, min_steps: int = 20) -> Iterator[Verdict]:
    """Each batch holds samples of one or a few classes only.

    ## What it does
    Compares the entropy of the labels within a batch with that of all labels seen, less what a
    batch of that size lacks by chance. It speaks where the usual batch has less than `share` of
    what it should have, over at least `min_steps` sampled steps, and each sample has one label.

    ## Why it matters
    A model that sees one class at a time learns to answer that class and forgets the others. The
    loss swings with the order of the data; validation predicts the class that came last.

    ## What to do
    Shuffle: `DataLoader(..., shuffle=True)`, or shuffle the list of files once before splitting.

    ## When it is wrong
    Few-shot and metric learning choose classes for a batch on purpose, as do samplers that group by
    class.

    ## How to confirm
    - Print the labels of three batches: `next(iter(loader))[1].unique(return_counts=True)`.
    """
    for owner, batch in run[TARGET_BATCH_ENTROPY].items():
        whole = last(run, TARGET_ENTROPY, owner)
        classes, count = last(run, TARGET_CLASSES, owner), readings(run, TARGET_COUNT, owner)
        if not len(batch) or whole is None or classes is None or not len(count):
            continue
        usual = float(np.median(batch.values))
        size = float(np.median(count))
        expected = whole - (classes - 1) / (2 * max(size, 1))  # what a batch lacks by chance
        said = (
            f"the usual batch of {size:.0f} has a label entropy of {usual:.2f}; all labels have"
            f" {whole:.2f}"
        )
        if expected < _LEAST:
            yield sorted_batches.not_examined(f"{said}: batches are too small to tell")
        elif usual >= share * expected:
            yield sorted_batches.clear(said)
        elif len(batch) < min_steps:
            yield sorted_batches.not_examined(f"{len(batch)} of the {min_steps} steps needed")
        elif not _one_label_each(run, size):
            yield sorted_batches.clear(f"{said}, but a sample has many labels")
        else:
            yield sorted_batches.finding(
                f"{said}: batches hold one class or few, {np.exp(usual):.1f} instead of about"
                f" {np.exp(expected):.1f}",
                confidence=Confidence.LIKELY,
                onset=batch.first,
                evidence=(
                    Evidence(
                        TARGET_BATCH_ENTROPY,
                        (batch.first, batch.last),
                        f"median {usual:.2f} nats over {len(batch)} steps; {expected:.2f} expected",
                        owner,
                    ),
                    Evidence(
                        TARGET_ENTROPY,
                        (batch.first, batch.last),
                        f"{whole:.2f} nats over {classes:.0f} classes",
                        owner,
                    ),
                ),
                fix="shuffle the training data: DataLoader(..., shuffle=True)",
            )


def _one_label_each(run: Run, labels: float) -> bool:
    """Whether a batch has as many labels as samples, so far as its size is known."""
    if DATA_BATCH_SIZE not in run:
        return True
    sizes = [float(np.median(each.values)) for each in run[DATA_BATCH_SIZE].values() if len(each)]
    return not sizes or any(0.5 < labels / max(size, 1) < 2 for size in sizes)
