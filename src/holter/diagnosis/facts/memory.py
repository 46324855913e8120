"""How memory grows over a run, and which variables hold what earlier steps left."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from holter.record import Run
from holter.record.events import PassBegan, ResultsKept
from holter.record.signals import GRAPH_KEPT, INPUT_ELEMENTS, MEMORY_HELD, Signal

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_WARM_UP = 0.3  # share of the steps in which caches fill, whatever the training does
_LEAST = 24  # readings after that
_PIECES = 4  # of the run after warm-up: a leak grows in all of them
_EVEN = 0.3  # of the mean rise, that each piece has to rise by
_PAIRS = 300  # readings that the slope is estimated from
_REGULAR = 0.8  # share of the intervals between readings that grow by the same number a step

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MemoryGrowth:
    """Growth of some memory after warm-up."""

    first: int  # step
    last: int
    begin: float  # bytes
    slope: float  # bytes a step, by Theil and Sen
    is_steady: bool  # it grows in every part of the run, and about as much in each
    passes: int | None  # over the data, after warm-up; None without a loader

    @property
    def total(self) -> float:
        """Bytes by which it grew."""
        return self.slope * (self.last - self.first)


@dataclass(frozen=True, slots=True)
class Keeper:
    """A variable of the training loop that grows with every step."""

    variable: str
    where: str
    code: str
    is_sum: bool
    first: int  # steps between which it was seen to grow
    last: int
    most: float  # results, or bytes
    per_step: float


def growth(facts: "Facts", signal: Signal) -> MemoryGrowth | str:
    """Return how some memory of the training grows, or why that cannot be said."""
    if signal not in facts.run:
        return "it was not recorded"
    series = facts.run[signal][""]
    if not len(series):
        return "it was not read"
    first = int(series.last * _WARM_UP)
    begins = sorted({event.step for event in facts.run.events_of(PassBegan)})
    if len(begins) > 2 and begins[2] < series.last:  # caches may fill in the whole first pass
        first = max(first, begins[1])
    after = series.steps >= first
    steps, values = series.steps[after].astype(np.float64), series.values[after].astype(np.float64)
    if len(steps) < _LEAST:
        return f"{len(steps)} of the {_LEAST} readings needed"
    rises = np.diff([float(np.median(piece)) for piece in _pieces(steps, values)])
    is_steady = bool(rises.mean() > 0 and rises.min() >= _EVEN * rises.mean())
    passes = sum(begin >= first for begin in begins) if begins else None
    return MemoryGrowth(
        int(steps[0]), int(steps[-1]), float(values[0]), slope(steps, values), is_steady, passes
    )


def _pieces(steps: Floats, values: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Return the readings of parts of the run that are equally long; no part is empty."""
    edges = np.linspace(steps[0], steps[-1], _PIECES + 2)[1:-1]
    parts = np.split(values, np.searchsorted(steps, edges))
    return [part for part in parts if len(part)]


def slope(steps: Floats, values: Floats) -> float:
    """Return the median slope between pairs of readings (Theil and Sen)."""
    chosen = np.linspace(0, len(steps) - 1, min(len(steps), _PAIRS)).astype(int)
    x, y = steps[chosen], values[chosen]
    before, after = np.triu_indices(len(x), 1)
    apart = x[after] > x[before]
    if not apart.any():
        return 0.0
    return float(np.median((y[after] - y[before])[apart] / (x[after] - x[before])[apart]))


def graph_keepers(run: Run) -> list[Keeper]:
    """Return the variables that keep a fixed number of graphs a step."""
    return [keeper for keeper in _keepers(run, GRAPH_KEPT) if _is_regular(run, keeper.variable)]


def memory_keepers(run: Run) -> list[Keeper]:
    """Return the containers that grow, those that hold most first."""
    return sorted(_keepers(run, MEMORY_HELD), key=lambda keeper: -keeper.most)


def _keepers(run: Run, signal: Signal) -> list[Keeper]:
    if signal not in run:
        return []
    lines = {event.what.variable: event.what for event in run.events_of(ResultsKept)}
    keepers = []
    for variable, series in run[signal].items():
        line = lines.get(variable)
        if line is None or len(series) < 2:
            continue
        values = series.values.astype(np.float64)
        per_step = slope(series.steps.astype(np.float64), values)
        keepers.append(
            Keeper(
                *(variable, line.where, line.code, line.is_sum, series.first, series.last),
                most=float(values.max()),
                per_step=per_step,
            )
        )
    return keepers


def _is_regular(run: Run, variable: str) -> bool:
    """Return whether as many results join at nearly every step.

    The losses of an episode, which are summed and then trained on, come in any number.
    """
    series = run[GRAPH_KEPT][variable]
    readings = list(zip(series.steps.tolist(), series.values.tolist(), strict=True))
    rates = [
        (after - before) / (later - earlier)
        for (earlier, before), (later, after) in pairwise(readings)
        if after > before
    ]
    if not rates:
        return False
    rate = float(np.median(rates))
    return float(np.mean(np.isclose(rates, rate))) >= _REGULAR


def input_growth(run: Run, growing: MemoryGrowth) -> float:
    """Return how many times larger the inputs of the models are at the end of a growth."""
    most = 1.0
    for series in run[INPUT_ELEMENTS].values() if INPUT_ELEMENTS in run else ():
        inside = (series.steps >= growing.first) & (series.steps <= growing.last)
        if not inside.any():
            continue
        pieces = _pieces(series.steps[inside].astype(np.float64), series.values[inside])
        first, last = float(np.median(pieces[0])), float(np.median(pieces[-1]))
        most = max(most, last / max(first, 1.0))
    return most
