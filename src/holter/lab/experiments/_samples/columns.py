"""The columns of a table: how many values each has, and how much it tells of the target."""

from dataclasses import dataclass

import numpy as np

from holter.lab.experiments._samples.datasets import Split
from holter.lab.experiments._samples.parts import Floats

_CLASSES = 50  # more are no classes, or too many to find in one column


@dataclass(frozen=True, slots=True)
class FeatureTable:
    """Rows and targets of a split; `classes` where targets are few whole numbers."""

    rows: Floats
    targets: Floats | None
    classes: Floats | None


def table(split: Split) -> FeatureTable | None:
    """The samples of a split as a table, if that is what they are: rows of one length."""
    rows = [sample.row for sample in split.samples]
    if any(row is None for row in rows) or len({len(row) for row in rows if row is not None}) > 1:
        return None
    made = np.stack([row for row in rows if row is not None])
    labels = [sample.label for sample in split.samples]
    if any(label is None for label in labels):
        return FeatureTable(made, None, None)
    targets = np.asarray(labels, np.float64)
    kinds = np.unique(targets)
    is_class = all(sample.is_class for sample in split.samples) and 2 <= len(kinds) <= _CLASSES
    return FeatureTable(made, targets, kinds if is_class else None)


def distinct(rows: Floats) -> Floats:
    """How many different values each column has."""
    ordered = np.sort(rows, axis=0)  # NaN last, and different from itself
    steps = (ordered[1:] != ordered[:-1]) & ~np.isnan(ordered[1:])
    mixed = np.isnan(ordered[-1]) & ~np.isnan(ordered[0])
    counts: Floats = 1.0 + steps.sum(axis=0) + mixed
    return counts


def residue(rows: Floats, targets: Floats) -> Floats:
    """Of each column, the share of the target's variance that a line through it leaves."""
    columns, aim = rows - rows.mean(axis=0), targets - targets.mean()
    norms = np.einsum("ij,ij->j", columns, columns)
    slopes = np.divide(aim @ columns, norms, out=np.zeros_like(norms), where=norms > 0)
    left = aim[:, None] - columns * slopes
    shares: Floats = np.einsum("ij,ij->j", left, left) / max(float(aim @ aim), 1e-300)
    return shares


def order(rows: Floats, targets: Floats) -> Floats:
    """Of each column, how well its order gives that of the target; 1 is without exception.

    The rank correlation, divided by the most that ties in the target allow: of two classes that is
    2 AUC - 1.
    """
    aim = _ranks(targets)
    aim -= aim.mean()
    result = np.zeros(rows.shape[1])
    sizes = np.unique(targets, return_counts=True)[1]
    two = len(sizes) == 2
    for place in range(rows.shape[1]):
        ranks = _ranks(rows[:, place])
        ranks -= ranks.mean()
        most = sizes.prod() * len(targets) / 4 if two else np.sqrt((aim @ aim) * (ranks @ ranks))
        result[place] = abs(aim @ ranks) / most if most > 0 else 0.0
    return np.minimum(result, 1.0)


def copies(rows: Floats, targets: Floats, classes: Floats) -> Floats:
    """Of each column: 2 if it has one value a class, 1 if it tells one class from all others."""
    result = np.zeros(rows.shape[1])
    for place in np.flatnonzero(distinct(rows) <= len(classes)):
        column = rows[:, place]
        owners = [np.unique(targets[column == value]) for value in np.unique(column)]
        if all(len(owner) == 1 for owner in owners) and len(owners) == len(classes):
            result[place] = 2
        elif len(owners) == 2 and min(len(owner) for owner in owners) == 1:
            rest = max(len(owner) for owner in owners)
            result[place] = float(rest == len(classes) - 1)
    return result


def _ranks(values: Floats) -> Floats:
    """The rank of each value, the mean of them where several are equal."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: Floats = (ends - (counts - 1) / 2)[inverse]
    return ranks
