"""Samples fetched twice by one index: whether the two are versions of one sample."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeGuard

import numpy as np

from holter.lab.experiments._samples.datasets import fetch
from holter.lab.experiments._samples.moves import Pair, pair_of
from holter.lab.experiments._samples.parts import (
    Array,
    Floats,
    array,
    digest,
    largest_array,
    parts,
    paths,
)
from holter.lab.setup import Roles

_KEPT = 65_536  # elements of a sample
_LEAST = 10  # samples with others of their class, to compare within classes
_FAR = 3  # from one version of a sample to another
_QUANTILES = np.linspace(0, 1, 33)
_DENSE = frozenset(  # names of targets in a dictionary that are as large as an image
    (
        *("mask", "masks", "seg", "segmentation", "gt", "ground_truth", "depth", "hr"),
        *("heatmap", "heatmaps"),
    )
)


@dataclass(frozen=True, slots=True)
class Draw:
    """What is kept of a sample that was fetched."""

    inputs: bytes | None
    targets: bytes | None
    values: Floats  # of the largest input, evenly spaced where there are many
    shape: tuple[int, ...] | None
    target_shape: tuple[int, ...] | None
    is_class: bool
    dense: Pair | None  # input and target, if both are images or maps


def draw(dataset: Any, index: int, roles: Roles | None = None) -> Draw:
    """Fetch a sample, and keep what is needed to compare it."""
    sample = fetch(dataset, index)
    inputs, targets = parts(sample)
    largest, target = largest_array(inputs), largest_array(targets)
    label = array(targets[0]) if len(targets) == 1 else None
    return Draw(
        digest(inputs),
        digest(targets),
        np.empty(0) if largest is None else _some(largest),
        None if largest is None else largest.shape,
        None if target is None else target.shape,
        label is not None and label.size == 1 and label.dtype.kind in "iu",
        pair_of(*_dense(sample, roles)),
    )


def draw_pair(dataset: Any, index: int, roles: Roles | None) -> Pair | None:
    """Fetch a sample, and keep the maps of its input and its dense target only."""
    return pair_of(*_dense(fetch(dataset, index), roles))


def are_paired(roles: Roles | None) -> TypeGuard[Roles]:
    """Whether the model is known to be given one part of a sample, and the loss another one."""
    return roles is not None and bool(roles.inputs)


def have_partners(ones: list[Draw], others: list[Draw]) -> bool:
    """Whether enough of `ones` have another of the same target."""
    targets = Counter(each.targets for each in (*ones, *others))
    return sum(targets[one.targets] > 1 for one in ones) >= min(_LEAST, len(ones))


def nearer(pairs: list[tuple[Draw, Draw]], others: list[Draw]) -> float | None:
    """How often two draws of one sample are nearer than most others are to the first.

    Those others are of the same target if enough have such: a sample that is generated each time
    may still keep its class.
    """
    ones, twos = [one for one, _ in pairs], [*(two for _, two in pairs), *others]
    shapes = {each.shape for each in (*ones, *twos)}
    if len(pairs) < 2 or None in shapes:
        return None
    views: list[Callable[[Floats], Floats]] = [_quantiles]
    if len(shapes) == 1:
        views += [_elements, _standardised]
    return max(_nearer_by(view, ones, twos) for view in views)


def wandering(samples: list[list[Draw]]) -> float | None:
    """Return how much more versions of a sample differ that are far apart than successive ones.

    It is 1 for independent versions, however many others were drawn in between, and more if each
    is made of the one before. None where versions cannot be compared.
    """
    found = []
    for view in (_elements, _quantiles):
        near: list[float] = []
        far: list[float] = []
        for versions in samples:
            values = [each.values for each in versions]
            if len({each.size for each in values}) != 1 or not values[0].size:
                return None
            seen = [view(each) for each in values]
            for (first, one), (last, other) in combinations(enumerate(seen), 2):
                if last - first == 1 or last - first >= _FAR:
                    distances = near if last - first == 1 else far
                    distances.append(float(np.abs(other - one).mean()))
        if near and far and np.mean(near) > 0:
            found.append(float(np.mean(far) / np.mean(near)))
    return max(found, default=None)


def _nearer_by(view: Callable[[Floats], Floats], ones: list[Draw], twos: list[Draw]) -> float:
    right = np.stack([view(two.values) for two in twos])
    distances = np.stack([np.abs(right - view(one.values)).mean(axis=1) for one in ones])
    mine = np.diag(distances)
    others = np.eye(*distances.shape) == 0
    same = [[one.targets == two.targets for two in twos] for one in ones]
    alike = others & np.asarray(same)
    if have_partners(ones, twos[len(ones) :]):
        others = alike
    judged = others.any(axis=1)
    usual = [
        np.median(row[where]) for row, where in zip(distances, others, strict=True) if where.any()
    ]
    return float((mine[judged] < usual).mean())


def _dense(sample: Any, roles: Roles | None) -> tuple[Array | None, Array | None]:
    """Return the largest input and the largest target, as the training uses them if known."""
    held = dict(paths(sample))
    if are_paired(roles) and {roles.target, *roles.inputs} <= held.keys():
        return largest_array([held[path] for path in roles.inputs]), array(held[roles.target])
    inputs, targets = parts(sample)
    if not targets and isinstance(sample, Mapping):
        targets = [leaf for name, leaf in sample.items() if str(name).lower() in _DENSE]
        inputs = [leaf for name, leaf in sample.items() if str(name).lower() not in _DENSE]
    return largest_array(inputs), largest_array(targets)


def _some(made: Array) -> Floats:
    flat = made.reshape(-1)
    some = flat[:: -(-flat.size // _KEPT)]
    kept: Floats = np.abs(some) if made.dtype.kind == "c" else some.astype(np.float64)
    return kept  # a copy: a data set may write into what it gives


def _elements(values: Floats) -> Floats:
    return values


def _standardised(values: Floats) -> Floats:
    """Without brightness and contrast, which a random change may give away."""
    centred: Floats = values - values.mean()
    return centred / max(float(values.std()), 1e-12)


def _quantiles(values: Floats) -> Floats:
    return np.quantile(values, _QUANTILES)
