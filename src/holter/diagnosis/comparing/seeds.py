"""A sweep over seeds: one number a run, and whether one variant beats another beyond noise."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from holter.diagnosis.comparing.statistics import Contrast, Sample, contrast, summarise
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.robust import midmean
from holter.record import Run, Series
from holter.record.errors import HolterError
from holter.record.signals import CATALOGUE, LOSS, VAL_LOSS, Per, Signal

_END = 0.1  # share of the training losses that is their level at the end
_ERRORS = 0.05  # probability of one wrong verdict in all comparisons of a sweep
_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Metric:
    """The number that is read from a run."""

    signal: Signal | None = None  # None: the validation loss if there is one, else the loss
    owner: str | None = None
    best: bool = False  # the best reading instead of the last one
    higher: bool | None = None  # is better; None: of an accuracy

    @classmethod
    def parse(
        cls, name: str | None, owner: str | None = None, *, best: bool = False, higher: bool = False
    ) -> "Metric":
        """Return the metric of a signal by its name, or raise HolterError."""
        if name is None:
            return cls(None, owner, best, higher or None)
        signal = CATALOGUE.get(name)
        if signal is None or signal.per in (Per.TRIAL, Per.PARAMETER, Per.MODULE):
            known = [each.name for each in CATALOGUE.values() if each.per is not Per.TRIAL]
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "for example val.loss or loss."
            raise HolterError(f"There is no metric {name!r}; {hint}")
        return cls(signal, owner, best, higher or None)

    def is_higher(self, signal: Signal) -> bool:
        """Whether a larger value is better."""
        return "accuracy" in signal.name if self.higher is None else self.higher


@dataclass(frozen=True, slots=True)
class Reading:
    """The metric of one run; `why` says why there is none."""

    seed: int
    value: float | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Variant:
    """The runs of one command under several seeds."""

    name: str
    command: str
    readings: tuple[Reading, ...]

    @property
    def values(self) -> list[float]:
        """The finite values."""
        found = [each.value for each in self.readings if each.value is not None]
        return [value for value in found if math.isfinite(value)]

    @property
    def sample(self) -> Sample | None:
        """Mean and interval; None if there is no finite value."""
        return summarise(self.values) if self.values else None

    @property
    def diverged(self) -> int:
        """Number of runs that ended with a value that is not finite."""
        return sum(
            each.value is not None and not math.isfinite(each.value) for each in self.readings
        )

    @property
    def missing(self) -> list[Reading]:
        """The runs without a value."""
        return [each for each in self.readings if each.value is None]


@dataclass(frozen=True, slots=True)
class Duel:
    """A variant against the first one."""

    name: str
    against: str
    result: Contrast | None  # None for fewer than two values on a side
    is_better: bool | None  # beyond noise; None if it cannot be told

    @property
    def says(self) -> str:
        """The verdict in words."""
        if self.result is None:
            return "needs at least two finished runs on each side"
        if self.is_better is None:
            more = self.result.enough
            need = f"; {more:,} seeds each would show such a difference" if more else ""
            return f"no difference beyond noise{need}"
        return "better beyond noise" if self.is_better else "worse beyond noise"


@dataclass(frozen=True, slots=True)
class SeedReport:
    """All variants of a sweep, compared with the first."""

    metric: str
    higher: bool
    variants: tuple[Variant, ...]
    duels: tuple[Duel, ...]
    level: float  # of the intervals of the differences

    @property
    def is_complete(self) -> bool:
        """Whether every run has a value."""
        return not any(variant.missing for variant in self.variants)


def read(run: Run, metric: Metric) -> tuple[str, Signal, float] | str:
    """Return the name of the metric, its signal and its value in a run; or why there is none."""
    found = _series(run, metric)
    if isinstance(found, str):
        return found
    signal, owner, series = found
    values = np.asarray(series.values, np.float64)
    name = f"{'best ' if metric.best else ''}{signal.name}{f' of {owner}' if owner else ''}"
    if metric.best:
        finite = values[np.isfinite(values)]
        pick = np.max if metric.is_higher(signal) else np.min
        return name, signal, float(pick(finite)) if len(finite) else math.nan
    if signal.name == LOSS.name and len(values) > 1:
        end = values[-max(1, round(_END * len(values))) :]
        return name, signal, midmean(end) if np.isfinite(end).all() else math.nan
    return name, signal, float(values[-1])


def report(
    commands: Mapping[str, str], runs: Mapping[tuple[str, int], Run | str], metric: Metric
) -> SeedReport:
    """Compare the runs of several commands, by name and seed; a string says why one is missing."""
    name, signal = "", VAL_LOSS if metric.signal is None else metric.signal
    variants = []
    for variant, command in commands.items():
        readings = []
        for (owner, seed), run in runs.items():
            if owner != variant:
                continue
            found = run if isinstance(run, str) else read(run, metric)
            if isinstance(found, str):
                readings.append(Reading(seed, None, found))
            else:
                name, signal, value = found
                readings.append(Reading(seed, value))
        variants.append(Variant(variant, command, tuple(readings)))
    higher = metric.is_higher(signal)
    level = 1 - _ERRORS / max(len(variants) - 1, 1)
    return SeedReport(
        name or signal.name, higher, tuple(variants), _duels(variants, higher, level), level
    )


def _duels(variants: Sequence[Variant], higher: bool, level: float) -> tuple[Duel, ...]:
    duels = []
    for variant in variants[1:]:
        result = contrast(variants[0].values, variant.values, level=level)
        better = None
        if result is not None and result.interval.excludes_zero:
            better = (result.difference > 0) == higher
        duels.append(Duel(variant.name, variants[0].name, result, better))
    return tuple(duels)


def _series(run: Run, metric: Metric) -> tuple[Signal, str, Series] | str:
    signal = metric.signal
    if signal is None or (signal.name.startswith("val.") and metric.owner is None):
        validation = Facts(run).evaluation
        if not isinstance(validation, str) and signal in (None, VAL_LOSS):
            return VAL_LOSS, "", validation.losses
        if not isinstance(validation, str) and signal is not None and signal in run:
            own = run[signal].get(validation.owner)
            if own is not None and len(own):
                return signal, "", own
        signal = signal or LOSS
    if signal not in run:
        return f"the run has no {signal.name}"
    table = run[signal]
    owners = [owner for owner in table if len(table[owner])]
    if metric.owner is not None:
        owners = [owner for owner in owners if owner == metric.owner]
        if not owners:
            return f"the run has no {signal.name} of {metric.owner!r}; it has {_listed(table)}"
    if not owners:
        return f"the run has no {signal.name}"
    if len(owners) > 1 and "" not in owners:
        return f"{signal.name} is read of {_listed(owners)}; choose one with --owner"
    owner = "" if "" in owners else owners[0]
    return signal, metric.owner or "", table[owner]


def _listed(owners: Mapping[str, object] | Sequence[str]) -> str:
    return ", ".join(repr(owner) for owner in owners)
