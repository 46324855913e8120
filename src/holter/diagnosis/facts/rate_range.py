"""The result of a learning-rate range test: a rate with an interval, or why there is none."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from holter.diagnosis.facts.robust import Values
from holter.diagnosis.facts.sweep import ESTIMATORS, OWN, Sweep
from holter.record import Run
from holter.record.signals import (
    LR_RANGE_CONFIGURED,
    LR_RANGE_END,
    LR_RANGE_ERROR,
    LR_RANGE_HELD,
    LR_RANGE_MOVED,
    LR_RANGE_RATE,
    LR_RANGE_START,
)
from holter.record.trials import TrialKind, TrialName

_FEWEST = 8  # rates that make a curve
_SURE = 3.0  # standard errors by which a loss has to fall to be more than noise
_APART = 1.5  # decades between sweeps that still agree
GAP = 3.0  # ratio of neighbouring rates between which another one is worth a trial
_WORSE = 0.05  # share of the best gain by which a rate may fall short and still count
_LESS = 0.8  # of what is best for a short training: longer ones want a little less


@dataclass(frozen=True, slots=True, eq=False)
class RateTrial:
    """A short training at one rate: the loss of each held batch in its last part."""

    name: str
    rate: float
    end: Values

    @property
    def level(self) -> float:
        """The mean held loss at the end; infinite where it is not finite."""
        return float(self.end.mean()) if np.isfinite(self.end).all() else np.inf


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A rate, and the rates about it that are nearly as good."""

    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class RangeTest:
    """A range test: where it began, its sweeps, its short trainings by rate, what is set."""

    start: Values  # the loss of each held batch
    sweeps: tuple[Sweep, ...]
    moved: float = 1.0  # the largest relative change of the weights in a sweep
    trials: tuple[RateTrial, ...] = ()
    configured: Mapping[str, float] = field(default_factory=dict)  # "peak", "now", "given"

    @cached_property
    def problem(self) -> str:
        """Why there is no suggestion; empty if there is one."""
        if self.broken:
            return self.broken
        if self.trials:
            return self._problem_of_trials()
        fall, error = self.fall
        if not fall > _SURE * error:
            return (
                f"the loss falls at no learning rate by more than its noise: by {max(fall, 0):.2g}"
                f" ± {error:.2g}"
            )
        own = self.rates(OWN)
        if max(own) > min(own) * 10**_APART:
            return f"the sweeps do not agree: they suggest {min(own):.2g} to {max(own):.2g}"
        return ""

    @cached_property
    def broken(self) -> str:
        """Why the sweeps show nothing; empty if they do."""
        lowest = min(
            (float(sweep.rates[0]) for sweep in self.sweeps if len(sweep.rates)), default=0.0
        )
        if not np.isfinite(self.start).all():
            return "the loss is not finite before any step"
        if not lowest:
            return "no step was taken at any rate"
        if not self.moved:
            return "no weight changes at any rate"
        if any(not np.isfinite(sweep.held[0]) for sweep in self.sweeps):
            return f"the loss is not finite after one step at the lowest rate, {lowest:.2g}"
        if min(len(sweep.rates) for sweep in self.sweeps) < _FEWEST:
            return (
                f"the loss diverges within {_FEWEST} steps from the lowest rate, {lowest:.2g}:"
                " start lower"
            )
        return ""

    @property
    def fall(self) -> tuple[float, float]:
        """By how much the loss falls in a sweep at most, and the standard error of that."""
        falls, errors = (
            [sweep.fall for sweep in self.sweeps],
            [sweep.error for sweep in self.sweeps],
        )
        return float(np.median(falls)), float(np.median(errors))

    def _problem_of_trials(self) -> str:
        error = self.error(self.best)
        if self.gain(self.best) > _SURE * error:
            return ""
        return (
            f"no short training lowers the loss by more than its noise: by"
            f" {self.gain(self.best):.2g} ± {error:.2g} at {self.best.rate:.2g}"
        )

    @property
    def level(self) -> float:
        """The mean held loss before any step."""
        return float(self.start.mean())

    def gain(self, trial: RateTrial) -> float:
        """By how much a short training lowers the held loss."""
        return self.level - trial.level

    def error(self, trial: RateTrial) -> float:
        """The standard error of that, over the held batches."""
        gains = self.start - trial.end
        if not np.isfinite(gains).all():
            return np.inf
        return float(gains.std(ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else 0.0

    def rates(self, estimator: str) -> list[float]:
        """What an estimator says of each sweep."""
        return [ESTIMATORS[estimator](sweep) for sweep in self.sweeps]

    @property
    def centre(self) -> float:
        """What the sweeps alone suggest."""
        return float(np.exp(np.median(np.log(self.rates(OWN)))))

    @property
    def best(self) -> RateTrial:
        """The short training that ended lowest."""
        return min(self.trials, key=lambda trial: trial.level)

    @property
    def diverges(self) -> float:
        """From which rate on the loss ends above its start; infinite if none was found."""
        edge = float(np.median([sweep.diverges for sweep in self.sweeps]))
        for trial in sorted(self.trials, key=lambda each: -each.rate):
            if trial.level <= self.level:
                break
            edge = min(edge, trial.rate)
        return edge

    @cached_property
    def suggestion(self) -> Suggestion:
        """The centre of the rates that gain nearly as much as the best, or of what sweeps say."""
        if not self.trials:
            own = self.rates(OWN)
            return Suggestion(self.centre, min(own), max(own))
        near = self._near_the_best()
        places = np.log([each.rate for each in near])
        short = np.array([each.level - self.best.level for each in near])
        worth = np.maximum(1 - short / (_WORSE * self.gain(self.best)), -1 / _WORSE)
        fine = np.linspace(places[0], places[-1], 200)
        along = np.interp(fine, places, np.maximum(worth, 0))
        centre = float((fine * along).sum() / along.sum())
        if np.interp(centre, fine, along) < 0.5:  # two hills: better the higher one than between
            centre = float(np.log(self.best.rate))
        rate = _LESS * float(np.exp(centre))
        low, high = np.exp(fine[np.interp(fine, places, worth) >= 0][[0, -1]])
        return Suggestion(rate, min(rate, float(low)), max(rate, float(high)))

    def _near_the_best(self) -> list[RateTrial]:
        """The trials about the best without gaps: nothing is known of what lies in a gap."""
        rates = [trial.rate for trial in self.trials]
        first = last = self.trials.index(self.best)
        while first > 0 and rates[first] < GAP * rates[first - 1]:
            first -= 1
        while last + 1 < len(rates) and rates[last + 1] < GAP * rates[last]:
            last += 1
        return list(self.trials[first : last + 1])

    def trial_at(self, rate: float) -> RateTrial | None:
        """The short training at this rate, if there was one."""
        return next((trial for trial in self.trials if abs(trial.rate / rate - 1) < 0.01), None)


def read(run: Run) -> RangeTest:
    """The range test that a run holds."""
    rates = run[LR_RANGE_RATE]
    start = run[LR_RANGE_START][""].values.astype(float)
    sweeps, trials = [], []
    for name, rate in rates.items():
        kind = TrialName.parse(name).kind
        if kind is TrialKind.SWEEP:
            held, errors = (run[each][name].values for each in (LR_RANGE_HELD, LR_RANGE_ERROR))
            sweeps.append(
                Sweep(
                    rate.values.astype(float),
                    held.astype(float),
                    errors.astype(float),
                    float(start.mean()),
                )
            )
        elif kind is TrialKind.CONFIRM:
            end = run[LR_RANGE_END][name].values.astype(float)
            trials.append(RateTrial(name, float(rate.values[-1]), end))
    moved = [float(each.values[-1]) for name, each in run[LR_RANGE_MOVED].items()]
    return RangeTest(
        start,
        tuple(sweeps),
        max(moved, default=0.0),
        tuple(sorted(trials, key=lambda trial: trial.rate)),
        {name: float(each.values[-1]) for name, each in run[LR_RANGE_CONFIGURED].items()},
    )
