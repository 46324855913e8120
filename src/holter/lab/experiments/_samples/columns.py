"""The columns of a table: how many values each has, and how much it tells of the target."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holter.lab.experiments._samples.datasets import Split
from holter.lab.experiments._samples.parts import Floats

_CLASSES = 50  # more are no classes, or too many to find in one column
_COLUMN_BINS, _TARGET_BINS = 64, 8
_PERMUTATIONS = 4
_REPEATED, _DIFFERENT = 5, 20  # rows with a placeholder, and other values beside it
_FAR = 5.0  # distance of a placeholder in ranges of the other values


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


def placeholders(rows: Floats) -> Floats:
    """Of each column, the share of rows with one value far outside the range of all others.

    The others have to be many different numbers, and their range a small part of the distance.
    """
    result = np.zeros(rows.shape[1])
    for place in range(rows.shape[1]):
        column = rows[:, place]
        for value in (column.max(), column.min()):
            is_value = column == value
            rest = column[~is_value]
            if is_value.sum() < _REPEATED or len(np.unique(rest)) < _DIFFERENT:
                continue
            if np.abs(rest - value).min() > _FAR * (rest.max() - rest.min()):
                result[place] = is_value.mean()
    return result


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


def information(rows: Floats, targets: Floats, *, classes: bool) -> Floats:
    """Of each column, the share of the target's entropy that it tells, whatever the relation.

    Mutual information of the column in 64 bins of equal count and the class, or else the target in
    8 bins; less what permuted targets give, which is the bias of so many bins.
    """
    generator = np.random.default_rng(0)
    aim = np.unique(targets, return_inverse=True)[1] if classes else _bins(targets, _TARGET_BINS)
    permuted = [generator.permutation(aim) for _ in range(_PERMUTATIONS)]
    kinds = int(aim.max()) + 1
    whole = _entropy(np.bincount(aim, minlength=kinds))
    result = np.zeros(rows.shape[1])
    for place in range(rows.shape[1]):
        column = _bins(rows[:, place], _COLUMN_BINS)
        bias = float(np.mean([_shared(column, other, kinds) for other in permuted]))
        if whole - bias > 0:
            result[place] = (_shared(column, aim, kinds) - bias) / (whole - bias)
    return np.clip(result, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two columns whose best linear combination gives the target, or its order."""

    columns: tuple[int, int]
    order: float  # as `order` of a column
    next_order: float  # of the best pair of other columns


def best_pair(rows: Floats, targets: Floats) -> Pair | None:
    """Return the two columns whose linear fit to the target is best, or None."""
    varying = np.flatnonzero(rows.std(axis=0) > 0)
    if len(varying) < 4:
        return None
    scaled = (rows[:, varying] - rows[:, varying].mean(axis=0)) / rows[:, varying].std(axis=0)
    aim = (targets - targets.mean()) / max(float(targets.std()), 1e-300)
    toward, among = scaled.T @ aim / len(aim), scaled.T @ scaled / len(aim)
    first, second = np.triu_indices(len(varying), 1)
    a, b, c = toward[first], toward[second], among[first, second]
    left = np.maximum(1 - c**2, 1e-9)
    fits = np.where(c**2 < 0.999, (a**2 + b**2 - 2 * a * b * c) / left, 0.0)
    if not (fits > 0).any():  # all columns are alike
        return None
    best = int(fits.argmax())
    own = (first[best], second[best])
    apart = np.where(np.isin(first, own) | np.isin(second, own), 0.0, fits)

    def ordered(n: int) -> float:
        i, j = first[n], second[n]
        weights = np.linalg.solve(among[np.ix_([i, j], [i, j])], toward[[i, j]])
        return float(order((scaled[:, [i, j]] @ weights)[:, None], targets)[0])

    return Pair(
        (int(varying[own[0]]), int(varying[own[1]])),
        ordered(best),
        ordered(int(apart.argmax())) if apart.any() else 0.0,
    )


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


def _bins(values: Floats, count: int) -> npt.NDArray[np.int64]:
    """The bin of each value, of bins that hold about as many values each."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, count + 1)[1:-1]))
    return np.asarray(np.searchsorted(edges, values, side="right"), np.int64)


def _shared(column: npt.NDArray[np.int64], aim: npt.NDArray[np.int64], kinds: int) -> float:
    """The mutual information of two discrete variables, in nats."""
    joint = np.bincount(column * kinds + aim, minlength=(int(column.max()) + 1) * kinds)
    table = joint.reshape(-1, kinds)
    return _entropy(table.sum(axis=0)) + _entropy(table.sum(axis=1)) - _entropy(joint)


def _entropy(counts: npt.NDArray[np.int64]) -> float:
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())
