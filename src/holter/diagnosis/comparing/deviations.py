"""Where the readings of two runs deviate: first in any bit, then by more than their noise."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts.curve import running_median
from holter.diagnosis.facts.robust import Values
from holter.record import Run, Series
from holter.record.signals import (
    CATALOGUE,
    GRAD_TOTAL_NORM,
    LOSS,
    VAL_ACCURACY,
    VAL_LOSS,
    Per,
    Phase,
    Signal,
)
from holter.record.table import Rows, Table

_BLOCK = 512  # steps that are compared at a time
_CURVES = (LOSS, VAL_LOSS, VAL_ACCURACY, GRAD_TOTAL_NORM)  # that have noise to be judged by
_OF_THE_MACHINE = ("time.", "watch.", "memory.")
_FEWEST = 20  # common readings of a curve
_MEDIAN_ERROR = 1.25  # standard error of a median over that of a mean
_SIGMA_PER_MAD = 1.4826
_ROUNDING = 1e-6  # of the level: what noise is at least


@dataclass(frozen=True, slots=True)
class Deviation:
    """A reading that differs between two runs."""

    step: int
    signal: Signal
    owner: str
    a: float
    b: float


@dataclass(frozen=True, slots=True)
class Departure:
    """A curve that deviates by more than its noise, from a step on."""

    step: int
    signal: Signal
    owner: str
    a: float  # level there
    b: float
    sigmas: float  # of the difference of the two levels


def is_comparable(signal: Signal) -> bool:
    """Whether a signal describes the training, not the time it took or an experiment."""
    return (
        signal.per is not Per.TRIAL
        and signal.bins == 1
        and signal.unit not in ("s", "bytes")
        and not signal.name.startswith(_OF_THE_MACHINE)
    )


def comparable_signals(run: Run) -> dict[str, Signal]:
    """Return the comparable signals of a run, in the order of a step."""
    known = [CATALOGUE[name] for name in run.tables if name in CATALOGUE]
    wanted = sorted(filter(is_comparable, known), key=lambda signal: (signal.phase, signal.name))
    return {signal.name: signal for signal in wanted}


def first_deviations(a: Run, b: Run) -> tuple[Deviation, ...]:
    """Return all readings that differ at the first step at which any does, in order of phase.

    Only steps at which both runs have a reading are compared; NaN equals NaN.
    """
    limit = min(a.steps, b.steps) - 1
    found: list[Deviation] = []
    theirs = comparable_signals(b)
    for name, signal in comparable_signals(a).items():
        if name not in theirs:
            continue
        own = _first_of(signal, a[signal], b[signal], limit)
        if own and own[0].step <= limit:
            if own[0].step < limit:
                found = []
            limit = own[0].step
            found += own
    return tuple(deviation for deviation in found if deviation.step == limit)


def compared_phases(a: Run, b: Run, step: int) -> set[Phase]:
    """Return the phases of which both runs have readings of one owner at a step."""
    shared = comparable_signals(a).keys() & comparable_signals(b).keys()
    return {
        CATALOGUE[name].phase
        for name in shared
        if any(True for _ in _common(a.tables[name], b.tables[name], step, step))
    }


def departures(a: Run, b: Run) -> tuple[Departure, ...]:
    """Return the curves that deviate by more than their noise, the earliest first."""
    found = []
    for signal in _CURVES:
        if signal not in a or signal not in b:
            continue
        for owner in a[signal]:
            if owner in b[signal]:
                departure = _departure(signal, owner, a[signal][owner], b[signal][owner])
                found += [departure] if departure is not None else []
    return tuple(sorted(found, key=lambda departure: departure.step))


def _first_of(signal: Signal, a: Table, b: Table, limit: int) -> list[Deviation]:
    """Return the deviations of one signal at the first step that has any, up to `limit`."""
    for start in range(0, limit + 1, _BLOCK):
        earliest: int | None = None
        found: list[Deviation] = []
        for steps, owners, ours, theirs in _common(a, b, start, min(start + _BLOCK - 1, limit)):
            with np.errstate(invalid="ignore"):
                differs = (ours != theirs) & ~(np.isnan(ours) & np.isnan(theirs))
            rows = differs.any(axis=1)
            if not rows.any():
                continue
            row = int(rows.argmax())
            step = int(steps[row])
            if earliest is None or step < earliest:
                earliest, found = step, []
            if step == earliest:
                found += [
                    Deviation(
                        step, signal, owners[at], float(ours[row, at]), float(theirs[row, at])
                    )
                    for at in np.flatnonzero(differs[row])
                ]
        if found:
            return found
    return []


def _common(
    a: Table, b: Table, first: int, last: int
) -> Iterator[tuple[npt.NDArray[np.int64], list[str], Values, Values]]:
    """Yield steps, owners and readings that both tables have; absent ones are NaN in both."""
    ours, theirs = a.rows(first, last), b.rows(first, last)
    steps, in_a, in_b = np.intersect1d(ours.steps, theirs.steps, return_indices=True)
    owners = [owner for owner in ours.owners if owner in set(theirs.owners)]
    if not len(steps) or not owners:
        return
    present_a, values_a = _taken(ours, in_a, owners)
    present_b, values_b = _taken(theirs, in_b, owners)
    both = present_a & present_b
    if both.any():
        yield steps, owners, np.where(both, values_a, np.nan), np.where(both, values_b, np.nan)


def _taken(
    rows: Rows, at: npt.NDArray[np.intp], owners: list[str]
) -> tuple[npt.NDArray[np.bool_], Values]:
    column = {owner: index for index, owner in enumerate(rows.owners)}
    place = np.ix_(at, np.array([column[owner] for owner in owners], np.intp))
    return rows.present[place], rows.values[place].astype(np.float64)


def _departure(signal: Signal, owner: str, a: Series, b: Series) -> Departure | None:
    """Return where two curves part by four standard errors of their running medians, and stay."""
    steps, in_a, in_b = np.intersect1d(a.steps, b.steps, return_indices=True)
    ours, theirs = (np.asarray(values, np.float64) for values in (a.values[in_a], b.values[in_b]))
    broken = np.isfinite(ours) != np.isfinite(theirs)
    if broken.any():
        at = int(broken.argmax())
        return Departure(int(steps[at]), signal, owner, ours[at], theirs[at], np.inf)
    finite = np.isfinite(ours)
    steps, ours, theirs = steps[finite], ours[finite], theirs[finite]
    if len(steps) < _FEWEST:
        return None
    width = int(np.clip(len(steps) // 20, 5, 100))
    levels = running_median(ours, width), running_median(theirs, width)
    noise = np.hypot(_noise(ours), _noise(theirs)) * _MEDIAN_ERROR / np.sqrt(width)
    error = np.maximum(noise, _ROUNDING * np.fmax(np.abs(levels[0]), np.abs(levels[1])))
    sigmas = np.abs(levels[0] - levels[1]) / np.maximum(error, 1e-30)
    start = _sustained(sigmas > 4, width)
    if start is None:
        return None
    return Departure(
        int(steps[start + width // 2]),
        signal,
        owner,
        float(levels[0][start]),
        float(levels[1][start]),
        float(sigmas[start]),
    )


def _noise(values: Values) -> float:
    """Return the standard deviation of readings about their trend, from successive differences."""
    between = np.diff(values)
    return _SIGMA_PER_MAD * float(np.median(np.abs(between - np.median(between)))) / 2**0.5


def _sustained(beyond: npt.NDArray[np.bool_], width: int) -> int | None:
    """Return the first place from which on `width` successive windows are beyond the noise."""
    if len(beyond) < width:
        return int(beyond.argmax()) if beyond.all() and len(beyond) else None
    whole = np.lib.stride_tricks.sliding_window_view(beyond, width).all(axis=1)
    return int(whole.argmax()) if whole.any() else None
