"""What was measured of samples, written to the run: how they were made, how splits differ."""

import numpy as np

from holter.lab.experiments._samples.alignment import alignment
from holter.lab.experiments._samples.collating import mispaired
from holter.lab.experiments._samples.datasets import Split
from holter.lab.experiments._samples.dependence import dependence
from holter.lab.experiments._samples.relations import relations
from holter.lab.experiments._samples.rewritten import rewritten
from holter.lab.experiments._samples.skew import FAR, skew
from holter.lab.experiments._samples.standardised import is_own
from holter.lab.experiments._samples.transfer import transfer
from holter.lab.setup import Setup
from holter.lab.writing import Lab
from holter.record.events import NotApplicable
from holter.record.signals import (
    DATASET_ALIGNMENT,
    DATASET_COLUMN_ORIGIN,
    DATASET_COLUMN_RATIO,
    DATASET_COLUMN_SHIFT,
    DATASET_COLUMN_TRANSFER,
    DATASET_DEPENDENCE,
    DATASET_KEY_SCORE,
    DATASET_KEY_SHARED,
    DATASET_MISPAIRED,
    DATASET_OWN_SCALE,
    DATASET_REWRITTEN,
    Signal,
)

MAKING = (
    *(DATASET_MISPAIRED, DATASET_OWN_SCALE, DATASET_DEPENDENCE, DATASET_ALIGNMENT),
    DATASET_REWRITTEN,
)
SKEW = (DATASET_COLUMN_SHIFT, DATASET_COLUMN_RATIO, DATASET_COLUMN_ORIGIN)

KEYS = (DATASET_KEY_SHARED, DATASET_KEY_SCORE)


def write_making(setup: Setup, lab: Lab, split: Split) -> None:
    """Write down how batches are put together, and how numbers were scaled."""
    loader = setup.loaders.get(split.name)
    share = None if loader is None else mispaired(setup, loader, split)
    if share is None:
        absent(lab, (DATASET_MISPAIRED,), "rows of a batch cannot be assigned to their samples")
    else:
        lab.write(DATASET_MISPAIRED, [share], trial=split.name)
    own = None if split.served is None else is_own(split.served.dataset)
    if own is None:
        absent(lab, (DATASET_OWN_SCALE,), "the data set holds no arrays of numbers")
    else:
        lab.write(DATASET_OWN_SCALE, [float(own)], trial=split.name)
    changed = rewritten(loader, split)
    if changed is None:
        absent(lab, (DATASET_REWRITTEN,), "the data set stores no rows of numbers in this process")
    else:
        lab.write(DATASET_REWRITTEN, [changed], trial=split.name)


def write_dependence(lab: Lab, split: Split, ignored: int | None) -> None:
    """Write down how targets depend on inputs, of samples and of positions in them."""
    shares = alignment(split, ignored)
    if shares is None:
        absent(lab, (DATASET_ALIGNMENT,), "samples are not tokens with a label each")
    else:
        lab.write(DATASET_ALIGNMENT, shares.tolist(), trial=split.name)
    found = dependence(split)
    if found is None:
        absent(lab, (DATASET_DEPENDENCE,), "targets are not single numbers, or too few were read")
        return
    values = [found.neighbours, found.neighbours_permuted, found.column, found.column_permuted]
    lab.write(DATASET_DEPENDENCE, values, trial=split.name)


def write_skew(lab: Lab, train: Split, valid: Split) -> None:
    """Write down how the columns of both splits differ."""
    found = skew(train, valid)
    if found is None:
        absent(lab, SKEW, "samples have no columns or channels")
        return
    shift = np.where(found.score > FAR, found.shift, 0.0)
    lab.write(DATASET_COLUMN_SHIFT, shift.tolist(), trial="valid")
    lab.write(DATASET_COLUMN_RATIO, found.ratio.tolist(), trial="valid")
    lab.write(DATASET_COLUMN_ORIGIN, found.origin.tolist(), trial="valid")


def write_transfer(lab: Lab, train: Split, valid: Split) -> None:
    """Write down what each column predicts in both splits."""
    found = transfer(train, valid)
    if found is None:
        why = "samples have no columns, or targets are not single numbers"
        absent(lab, (DATASET_COLUMN_TRANSFER,), why)
        return
    for trial, values in (("train", found.train), ("valid", found.valid), ("error", found.error)):
        lab.write(DATASET_COLUMN_TRANSFER, values.tolist(), trial=trial)


def write_relations(lab: Lab, train: Split, valid: Split) -> None:
    """Write down which groups and times both splits share."""
    found = relations(train, valid)
    if found is None:
        absent(lab, KEYS, "inputs or targets cannot be compared, or there are too few samples")
    elif not found:
        absent(lab, KEYS, "there is no column that several samples share, and no time")
    for relation in found or ():
        trial = f"{relation.kind} {relation.name}"
        scores = [relation.score, relation.without, relation.permuted]
        lab.write(DATASET_KEY_SHARED, [relation.shared], trial=trial)
        lab.write(DATASET_KEY_SCORE, scores, trial=trial)


def absent(lab: Lab, signals: tuple[Signal, ...], why: str) -> None:
    """Write down why a part of the experiment was not made."""
    lab.event(NotApplicable("data", why, tuple(signal.name for signal in signals)))
