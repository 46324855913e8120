"""Layers in order of depth, and their readings, bounded in number."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod, sqrt
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts.windows import CELLS
from holter.record.signals import (
    ACTIVATION_MEAN,
    ACTIVATION_SATURATED_FRACTION,
    ACTIVATION_STD,
    Signal,
)

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

Matrix = npt.NDArray[np.float64]

_PIECES = 8  # of a run that is too long to be read in full


@dataclass(frozen=True, slots=True)
class Layer:
    """A weight with two dimensions or more."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def module(self) -> str:
        """The module that holds it."""
        return self.name.rpartition(".")[0]

    @property
    def root(self) -> float:
        """The square root of its size: a norm divided by it is an RMS."""
        return sqrt(prod(self.shape))


@dataclass(frozen=True, slots=True)
class Sample:
    """Readings of some owners: one row per step, NaN for missing and non-finite readings.

    Steps without any reading are left out; steps without a finite one are kept.
    """

    steps: npt.NDArray[np.int64]
    owners: tuple[str, ...]
    values: Matrix

    def __len__(self) -> int:
        return len(self.steps)

    def between(self, low: float, high: float) -> "Sample":
        """Return the rows of a part of the run: `between(0.5, 1)` is its second half.

        The parts are measured in steps, not rows: early steps are sampled more often.
        """
        if not len(self):
            return self
        first, whole = self.steps[0], self.steps[-1] - self.steps[0]
        begin = int(np.searchsorted(self.steps, first + low * whole, "left"))
        end = int(np.searchsorted(self.steps, first + high * whole, "right"))
        part = slice(min(begin, len(self) - 1), max(end, begin + 1))
        return Sample(self.steps[part], self.owners, self.values[part])

    def since(self, step: int) -> "Sample":
        """Return the rows from a step on."""
        return Sample(self.steps[self.steps >= step], self.owners, self.values[self.steps >= step])

    def medians(self) -> Matrix:
        """Return the median over the steps for each owner; NaN without a finite reading."""
        return median(self.values, axis=0)

    def typical(self) -> Matrix:
        """Return the median over the owners for each step."""
        return median(self.values, axis=1)


def trained_layers(facts: "Facts") -> list[Layer]:
    """Return the weights that an optimizer trains, in order of registration: input first."""
    parameters = {parameter.name: parameter for parameter in facts.parameters}
    return [
        Layer(name, shape, dtype)
        for name, (shape, dtype) in facts.run.meta.parameters.items()
        if len(shape) >= 2
        and prod(shape) > 1
        and (
            name not in parameters
            or (parameters[name].trainable and parameters[name].optimizer >= 0)
        )
    ]


def sample(facts: "Facts", signal: Signal, owners: Iterable[str] | None = None) -> Sample:
    """Return readings of `owners` in their order, or of all; a long run is read in pieces."""
    table = facts.run[signal]
    places = {owner: column for column, owner in enumerate(table)}
    chosen = tuple(places if owners is None else (owner for owner in owners if owner in places))
    columns = [places[owner] for owner in chosen]
    steps, values = [], []
    for first, last in _pieces(facts.run.steps, CELLS // max(len(places), 1)):
        rows = table.rows(first, last)
        read = rows.values[:, columns].astype(np.float64)
        read[~np.isfinite(read)] = np.nan  # missing readings are NaN already
        kept = rows.present[:, columns].any(axis=1)
        steps.append(rows.steps[kept])
        values.append(read[kept])
    if not steps:
        return Sample(np.empty(0, np.int64), chosen, np.empty((0, len(chosen))))
    return Sample(np.concatenate(steps), chosen, np.concatenate(values))


def median(values: Matrix, axis: int) -> Matrix:
    """Return the median of the finite values along an axis; NaN without any."""
    ordered = np.sort(np.where(np.isfinite(values), values, np.inf), axis=axis)
    count = np.isfinite(values).sum(axis=axis)
    middle = np.expand_dims(np.maximum(count - 1, 0) // 2, axis)
    if not values.size:
        return np.full(count.shape, np.nan)
    lower = np.take_along_axis(ordered, middle, axis).squeeze(axis)
    upper = np.take_along_axis(ordered, np.expand_dims(count // 2, axis), axis).squeeze(axis)
    return np.where(count > 0, np.where(count % 2, lower, (lower + upper) / 2), np.nan)


def geometric(levels: Sequence[float] | Matrix, *, layers: int) -> float:
    """Return the factor by which positive levels grow over the layers, or 1 without a trend.

    A single jump, as from the last hidden layer to a head that starts small, is no trend: no jump
    may make up half of the growth, and three of four have the same direction.
    """
    positive = np.asarray(levels, np.float64)
    positive = positive[np.isfinite(positive) & (positive > 0)]
    if len(positive) < layers:
        return 1.0
    jumps = np.diff(np.log(positive))
    whole = float(jumps.sum())
    along = jumps * np.sign(whole)
    if along.max() > abs(whole) / 2 or (along > 0).mean() < 0.75:
        return 1.0
    return float(np.exp(whole))


def inner_activations(facts: "Facts") -> list[str]:
    """Return the saturating modules before the last module with weights.

    A softmax is left out; it is recognised by a constant mean, because its outputs sum to 1.
    """
    modules = list(facts.run[ACTIVATION_STD]) if ACTIVATION_STD in facts.run else []
    weighted = {layer.module for layer in facts.layers}
    places = [place for place, name in enumerate(modules) if name in weighted]
    last = max(places, default=len(modules))
    before = set(modules[:last]) if modules else set(facts.run[ACTIVATION_SATURATED_FRACTION])
    return [
        name
        for name in facts.run[ACTIVATION_SATURATED_FRACTION]
        if name in before and not _constant_mean(facts, name)
    ]


def _constant_mean(facts: "Facts", name: str) -> bool:
    series = facts.run[ACTIVATION_MEAN].get(name) if ACTIVATION_MEAN in facts.run else None
    if series is None or len(series) < 2:
        return False
    values = series.values[np.isfinite(series.values)]
    return bool(len(values) > 1 and values.min() > 0 and np.ptp(values) < 1e-5 * values.max())


def _pieces(steps: int, rows: int) -> list[tuple[int, int]]:
    if steps <= rows:
        return [(0, steps - 1)]
    width = max(rows // _PIECES, 1)
    starts = np.linspace(0, steps - width, _PIECES).astype(int)
    return [(int(start), int(start) + width - 1) for start in starts]
