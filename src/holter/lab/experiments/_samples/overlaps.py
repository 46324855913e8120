"""What training and validation share: samples that are equal, positions in the same data."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from holter.lab.experiments._samples.datasets import Split, fetch, origin
from holter.lab.experiments._samples.holdings import left_alone
from holter.lab.experiments._samples.parts import digest, parts

_VERIFIED = 32  # samples that are fetched from both sides, where positions alone are no proof


@dataclass(frozen=True, slots=True)
class Overlap:
    """Validation samples that are among those of training, each with where it is there."""

    inputs: tuple[tuple[int, int], ...]  # index in validation, index in training
    whole: int  # those whose targets are the same too


def overlap(train: Split, valid: Split) -> Overlap | None:
    """Which inputs of validation are training inputs, bit by bit; None if they cannot be read."""
    places: dict[bytes, int] = {}
    for sample in train.samples:
        if sample.inputs is not None:
            places.setdefault(sample.inputs, sample.index)
    held = [sample for sample in valid.samples if sample.inputs is not None]
    if not places or not held:
        return None
    both = {(sample.inputs, sample.targets) for sample in train.samples}
    found = [each for each in held if each.inputs in places]
    found.sort(key=lambda each: each.index)
    pairs = tuple((each.index, places[each.inputs]) for each in found if each.inputs is not None)
    return Overlap(pairs, sum((each.inputs, each.targets) in both for each in found))


def duplicates(split: Split) -> tuple[Counter[bytes], list[list[int]]]:
    """How often each input occurs, and the indices of those that do with several classes."""
    counts = Counter(sample.inputs for sample in split.samples if sample.inputs is not None)
    groups: dict[bytes, list[tuple[int, float]]] = {}
    for sample in split.samples:
        if sample.inputs is not None and counts[sample.inputs] > 1 and sample.is_class:
            assert sample.label is not None
            groups.setdefault(sample.inputs, []).append((sample.index, sample.label))
    differing = [group for group in groups.values() if len({label for _, label in group}) > 1]
    return counts, [[index for index, _ in group] for group in differing]


def shared_positions(train: Split, valid: Split) -> dict[str, float]:
    """The share of validation that training serves too, where both are parts of the same data."""
    if train.served is None or valid.served is None:
        return {}
    one, in_one, surely = origin(train.served.dataset, train.served.positions)
    other, in_other, also = origin(valid.served.dataset, valid.served.positions)
    if one is not other and not _is_alike(one, other):
        return {}
    if one is other and surely and also:
        return {"same": _share(in_one, in_other)}
    places = dict(zip(in_one, train.served.positions, strict=True))
    common = [
        (places[first], second)
        for first, second in zip(in_other, valid.served.positions, strict=True)
        if first in places
    ]
    if common:
        with left_alone(train.served.dataset, valid.served.dataset):
            if not _are_same(train.served.dataset, valid.served.dataset, common):
                return {}
    return {"alike": _share(in_one, in_other)}


def _share(train: Sequence[int], valid: Sequence[int]) -> float:
    if isinstance(train, range) and isinstance(valid, range):
        return min(len(train), len(valid)) / max(len(valid), 1)
    return float(np.isin(np.unique(valid), np.unique(train)).mean())


def _are_same(train: Any, valid: Any, common: list[tuple[int, int]]) -> bool:
    """Whether pairs of positions hold the same samples: one target each, and not all of one."""
    some = np.random.default_rng(0).permutation(len(common))[:_VERIFIED]
    targets = []
    for first, second in (common[each] for each in some):
        one, other = parts(fetch(train, first)), parts(fetch(valid, second))
        if not _are_equal(one[0], other[0]) and not _are_equal(one[1], other[1]):
            return False
        targets.append(digest(one[1]))
    return len(set(targets)) > 1


def _are_equal(one: list[Any], other: list[Any]) -> bool:
    made = digest(one)
    return made is not None and made == digest(other)


def _is_alike(one: Any, other: Any) -> bool:
    """Whether two data sets are of one kind and hold the same inputs, as with another transform."""
    if type(one) is not type(other) or not hasattr(one, "__dict__"):
        return False
    count = len(one)
    mine, theirs = vars(one), vars(other)
    return len(other) == count and any(
        _is_same_data(each, theirs.get(name), count) for name, each in mine.items()
    )


def _is_same_data(one: Any, other: Any, count: int) -> bool:
    """Whether two containers with a thing for each sample hold the same; labels do not count."""
    if type(one) is not type(other) or not hasattr(one, "__len__"):
        return False
    places = range(0, count, max(count // _VERIFIED, 1))  # it may be a file of many gigabytes
    if isinstance(one, torch.Tensor | np.ndarray) and one.ndim > 1 and len(one) == count:
        return one is other or (
            one.shape == other.shape and all(bool((one[i] == other[i]).all()) for i in places)
        )
    if isinstance(one, list | tuple) and len(one) == len(other) == count:
        return all(_is_named(one[i]) and one[i] == other[i] for i in places)
    return False


def _is_named(each: Any) -> bool:
    """Whether it is the name of a file, or begins with one."""
    return isinstance(each[0] if isinstance(each, tuple) and each else each, str)
