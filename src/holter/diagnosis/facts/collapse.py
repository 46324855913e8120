"""What models return that no longer varies between samples, whatever the loss makes of it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holter.record import Series
from holter.record.signals import (
    RESPONSE_INPUT_SPREAD,
    RESPONSE_INPUT_UNITS,
    RESPONSE_SIZE,
    RESPONSE_SPREAD,
    RESPONSE_UNITS,
    Signal,
)

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_FEWEST = 8  # readings
_EARLY = 3  # readings at the start
_SAME = 1e-5  # relative difference of spreads of one tensor


@dataclass(frozen=True, slots=True)
class Response:
    """A tensor that a model returns: how it varies, at the start and at the end."""

    owner: str
    units: int
    spread: Series
    initial: float  # spread
    initial_size: float
    final: float
    size: float  # root mean square at the end
    given: float  # spread of the inputs in the second half, where it is large; NaN if unknown
    given_units: int
    inputs: Series  # their spread

    def passes_on_to(self, other: "Response") -> bool:
        """Return whether another model is given exactly what this one returns at some steps."""
        _, mine, others = np.intersect1d(self.spread.steps, other.inputs.steps, return_indices=True)
        made, given = self.spread.values[mine], other.inputs.values[others]
        return bool(np.isclose(made, given, rtol=_SAME, atol=0).any())

    @property
    def relative(self) -> float:
        """The spread at the end as a share of the size."""
        return self.final / self.size if self.size > 0 else 0.0

    @property
    def initial_relative(self) -> float:
        """The spread at the start as a share of the size."""
        return self.initial / self.initial_size if self.initial_size > 0 else 0.0

    def fell_at(self, limit: float) -> int:
        """Return the step from which on the spread is below a limit."""
        above = np.flatnonzero(~(self.spread.values < limit))
        after = int(above[-1]) + 1 if len(above) else 0
        return int(self.spread.steps[min(after, len(self.spread) - 1)])


def responses(facts: "Facts") -> list[Response]:
    """Return what models return, where it was finite and read often enough."""
    if RESPONSE_SPREAD not in facts.run:
        return []
    return [
        made
        for owner in facts.run[RESPONSE_SPREAD]
        if (made := _response(facts, owner)) is not None
    ]


def _response(facts: "Facts", owner: str) -> Response | None:
    spread = _finite(facts, RESPONSE_SPREAD, owner)
    if len(spread) < _FEWEST:
        return None
    return Response(
        owner,
        int(np.nan_to_num(_end(_finite(facts, RESPONSE_UNITS, owner)))),
        spread,
        _start(spread),
        _start(_finite(facts, RESPONSE_SIZE, owner)),
        _end(spread),
        _end(_finite(facts, RESPONSE_SIZE, owner)),
        _large(_finite(facts, RESPONSE_INPUT_SPREAD, owner)),
        int(np.nan_to_num(_end(_finite(facts, RESPONSE_INPUT_UNITS, owner)))),
        _finite(facts, RESPONSE_INPUT_SPREAD, owner),
    )


def _finite(facts: "Facts", signal: Signal, owner: str) -> Series:
    if signal not in facts.run or owner not in facts.run[signal]:
        return Series(np.empty(0, np.int64), np.empty(0, np.float32))
    series = facts.run[signal][owner]
    kept = np.isfinite(series.values)
    return Series(series.steps[kept], series.values[kept])


def _start(series: Series) -> float:
    """Return the median of the first readings, or NaN."""
    return float(np.median(series.values[:_EARLY])) if len(series) else float("nan")


def _large(series: Series) -> float:
    """Return the upper decile of the second half, or NaN: an adversary is given fakes as well."""
    return float(np.quantile(series.values[len(series) // 2 :], 0.9)) if len(series) else np.nan


def _end(series: Series) -> float:
    """Return the median of the last quarter of the readings, or NaN."""
    if not len(series):
        return float("nan")
    return float(np.median(series.values[-max(len(series) // 4, 1) :]))
