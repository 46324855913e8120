"""Groups and times that training and validation share, and what the targets owe to them.

The nearest training input predicts the target of a validation sample. If it does so far worse once
training samples of the same group, or of about the same time, are left out, validation measures how
well a group is recognised.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holter.lab.experiments._samples.datasets import Split
from holter.lab.experiments._samples.keys import Key, Values, keys, positions, targets_of
from holter.lab.experiments._samples.parts import Floats

_FEWEST_TRAIN, _FEWEST_VALID = 100, 40  # samples
_MOST_VALID = 1000  # that are compared
_FEWEST_GROUPS = 10
_MOST_COPIES = 0.1  # share of validation inputs that are training inputs; more are prototypes
_LARGEST_GROUP = 0.2  # share of the training samples
_SHARED = 0.1  # share of validation whose group is in training, below which it is split by groups
_WINDOW = 0.05  # share of the training samples that are about as old
_TIMES = ("time", "date", "day", "year", "month", "hour", "epoch_s", "timestamp")
_WORTH = 0.1  # loss of score from which on permuted keys are compared
_PERMUTATIONS = 5

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Relation:
    """How a key relates both splits, and the score of the nearest neighbour with and without."""

    kind: str  # "group", "time"
    name: str
    shared: float  # share of validation with a group, or inside a time span, of training
    score: float  # share of correct classes beyond the most frequent one, or R²
    without: float  # the same if samples of the same group or time are left out
    permuted: float  # the same with permuted keys; the lowest of a few


def relations(train: Split, valid: Split) -> tuple[Relation, ...] | None:
    """Return what each group or time column does; None where samples cannot be compared."""
    made = _Neighbours.of(train, valid)
    if made is None:
        return None
    found: list[Relation] = []
    place = positions(train, valid)
    for key in keys(train, valid):
        if _is_group(key):
            found.append(made.relation("group", key, _same_group))
        elif _is_time(key, place) and not made.is_sorted_by(key):
            found.append(made.relation("time", key, _same_time))
    if place is not None and not made.is_sorted_by(place):
        found.append(made.relation("time", place, _same_time))
    return tuple(found)


def _is_group(key: Key) -> bool:
    """Whether several samples share each of many values."""
    _, counts = np.unique(key.train, return_counts=True)
    return (
        len(counts) >= _FEWEST_GROUPS
        and 2 * len(counts) <= len(key.train)
        and counts.max() <= _LARGEST_GROUP * len(key.train)
    )


def _is_time(key: Key, place: Key | None) -> bool:
    """Whether a number is called a time, or only rises from sample to sample."""
    if not key.is_number or len(np.unique(key.train)) < len(key.train) // 2:
        return False
    if any(word in key.name.lower() for word in _TIMES):
        return True
    if place is None:
        return False
    order = np.argsort(np.concatenate([place.train, place.valid]))
    return bool((np.diff(np.concatenate([key.train, key.valid])[order]) >= 0).all())


def _same_group(train: Values, valid: Values) -> Mask:
    same: Mask = valid[:, None] == train[None, :]
    return same


def _same_time(train: Values, valid: Values) -> Mask:
    """Return which training samples are among the nearest in time, by rank."""
    ranks = np.searchsorted(np.sort(train), train)
    own = np.searchsorted(np.sort(train), valid)
    same: Mask = np.abs(own[:, None] - ranks[None, :]) <= _WINDOW * len(train)
    return same


@dataclass(frozen=True, slots=True)
class _Neighbours:
    """Distances of validation samples to training samples, and the targets of both."""

    train: Floats  # inputs, each column of unit variance
    valid: Floats
    own: Floats  # targets of training
    aims: Floats  # targets of validation
    classes: bool
    distances: Floats
    rows: bool  # inputs are whole rows of a table: column `n` is that of a key

    @classmethod
    def of(cls, train: Split, valid: Split) -> "_Neighbours | None":
        inputs, targets = [], []
        rows = all(sample.row is not None for split in (train, valid) for sample in split.samples)
        for split in (train, valid):
            held = [sample.row if rows else sample.probe for sample in split.samples]
            made = targets_of(split)
            lengths = {len(each) for each in held if each is not None}
            if made is None or len(lengths) != 1 or any(each is None for each in held):
                return None
            inputs.append(np.stack([each for each in held if each is not None]))
            targets.append(made)
        known, asked = inputs[0], inputs[1][:_MOST_VALID]
        own, aims = targets[0], targets[1][:_MOST_VALID]
        few = len(known) < _FEWEST_TRAIN or len(asked) < _FEWEST_VALID
        if few or not (train.arrives and valid.arrives) or known.shape[1] != asked.shape[1]:
            return None
        if not (np.isfinite(known).all() and np.isfinite(asked).all()):
            return None
        copies = {sample.inputs for sample in train.samples}
        if np.mean([sample.inputs in copies for sample in valid.samples]) > _MOST_COPIES:
            return None
        if len(np.unique(own)) < 2 or len(np.unique(aims)) < 2:
            return None
        spread = known.std(axis=0)
        scale = np.where(spread > 0, spread, np.inf)  # a constant column tells nothing
        known, asked = known / scale, asked / scale
        squares = (asked**2).sum(axis=1)[:, None] + (known**2).sum(axis=1)
        classes = all(sample.is_class for sample in (*train.samples, *valid.samples))
        classes = classes and 2 * len(np.unique(own)) <= len(own)
        return cls(known, asked, own, aims, classes, squares - 2 * asked @ known.T, rows)

    def is_sorted_by(self, key: Key) -> bool:
        """Whether the target follows the key: samples sorted by class are not a recording."""
        ordered = self.own[np.argsort(key.train, kind="stable")]
        if self.classes:
            runs = 1 + int((ordered[1:] != ordered[:-1]).sum())
            return runs <= 2 * len(np.unique(ordered))
        ranks = np.argsort(np.argsort(ordered, kind="stable"))
        return abs(float(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1])) > 0.9

    def relation(self, kind: str, key: Key, same: Callable[[Values, Values], Mask]) -> Relation:
        """Measure what leaving out related training samples does."""
        valid = key.valid[: len(self.valid)]
        distances = self._distances(key)
        score = self._score(distances)
        shared = _shared(kind, key.train, valid)
        without = permuted = score
        if shared >= _SHARED:
            without = self._score(np.where(same(key.train, valid), np.inf, distances))
            if score - without >= _WORTH:
                permuted = min(self._permuted(key, same, distances))
        return Relation(kind, key.name, shared, score, without, permuted)

    def _permuted(
        self, key: Key, same: Callable[[Values, Values], Mask], distances: Floats
    ) -> Iterator[float]:
        generator = np.random.default_rng(0)
        for _ in range(_PERMUTATIONS):
            mask = same(
                generator.permutation(key.train),
                generator.permutation(key.valid)[: len(self.valid)],
            )
            yield self._score(np.where(mask, np.inf, distances))

    def _distances(self, key: Key) -> Floats:
        """Return the squared distances without the column that is the key itself."""
        if key.column is None or not self.rows:
            return self.distances
        apart = self.valid[:, key.column][:, None] - self.train[:, key.column]
        return self.distances - apart**2

    def _score(self, distances: Floats) -> float:
        guessed = self.own[distances.argmin(axis=1)]
        if self.classes:
            kinds, counts = np.unique(self.own, return_counts=True)
            base = float((self.aims == kinds[counts.argmax()]).mean())
            return float(((guessed == self.aims).mean() - base) / max(1 - base, 1e-9))
        error = float(((guessed - self.aims) ** 2).sum())
        return 1 - error / max(float(((self.aims - self.aims.mean()) ** 2).sum()), 1e-300)


def _shared(kind: str, train: Values, valid: Values) -> float:
    """Return the share of validation with a group of training, or between its times."""
    if kind == "group":
        return float(np.isin(valid, train).mean())
    return float(((valid > train.min()) & (valid < train.max())).mean())
