"""Slices: groups of samples by a feature, and how much of the error a feature explains."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

_MOST_VALUES = 20  # different values that are groups by themselves
_GROUPS = 5  # of about as many samples, where there are more values

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Group:
    """Samples with about the same value of a feature."""

    name: str
    chosen: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Slicing:
    """The groups by one feature, and the share of the losses' variance between them."""

    by: str
    groups: tuple[Group, ...]
    explained: float
    noise: float  # what groups by chance would explain

    @property
    def gain(self) -> float:
        """What the feature explains beyond chance."""
        return self.explained - self.noise


def slicing_by(name: str, values: Values, losses: Values) -> Slicing | None:
    """Return groups by a feature; None if it does not vary."""
    groups = _groups(values)
    total = float(((losses - losses.mean()) ** 2).sum())
    if len(groups) < 2 or not np.isfinite(total) or total == 0:
        return None
    between = sum(
        group.chosen.sum() * (losses[group.chosen].mean() - losses.mean()) ** 2 for group in groups
    )
    noise = (len(groups) - 1) / max(len(losses) - 1, 1)
    return Slicing(name, tuple(groups), float(between) / total, noise)


def _groups(values: Values) -> list[Group]:
    known = np.isfinite(values)
    different = np.unique(values[known])
    if len(different) <= _MOST_VALUES:
        return [Group(f"{value:.4g}", values == value) for value in different]
    edges = np.unique(np.quantile(values[known], np.linspace(0, 1, _GROUPS + 1)))
    groups = []
    for place, (low, high) in enumerate(pairwise(edges)):
        is_last = place == len(edges) - 2
        chosen = (values >= low) & ((values <= high) if is_last else (values < high))
        groups.append(Group(f"{low:.3g} to {high:.3g}", chosen))
    return [group for group in groups if group.chosen.any()]
