"""What a learning-rate range test tells: estimators on log-LR, what was confirmed, or nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from holter.rules._robust import Values
from holter.run import Run
from holter.signals import (
    LR_RANGE_CONFIGURED,
    LR_RANGE_END,
    LR_RANGE_ERROR,
    LR_RANGE_HELD,
    LR_RANGE_MOVED,
    LR_RANGE_RATE,
    LR_RANGE_START,
)

SWEEP, CONFIRM = "sweep", "confirm"  # the kinds of trials, before their number or their rate

_FEWEST = 8  # rates that make a curve
_SURE = 3.0  # standard errors by which a loss has to fall to be told from noise
_OVER = 2.0  # standard errors by which it has to rise
_APART = 1.5  # decades between sweeps that still agree
_STEP = 2.0  # from one candidate to the next
_GAP = 3.0  # between candidates, that is worth another one
_WIDE = 5.0  # the same where the sweeps say nothing
_WORSE = 0.1  # share of the best gain by which a rate may fall short and still count
_BEGUN = 0.02  # share of the fall before which the curve is taken for flat
# Over 26 small trainings, half of them with small batches and wrong labels, the rate that trained
# best was half of that by which a sweep had done four fifths of its fall, up to a factor of 2.3.
_DONE, _PART = 0.8, 0.5


def smooth(values: Values) -> Values:
    """Medians of five, then means of three; what is not finite is left out and spreads nowhere."""
    known = np.where(np.isfinite(values), values, np.nan)
    return _running(_running(known, 2, np.nanmedian), 1, np.nanmean)


def _running(values: Values, reach: int, of: Callable[[Values], float]) -> Values:
    parts = (values[max(at - reach, 0) : at + reach + 1] for at in range(len(values)))
    return np.array([of(each) if np.isfinite(each).any() else np.nan for each in parts])


@dataclass(frozen=True)
class Sweep:
    """One sweep: the loss of the held batches after a step at each rate, from the same start."""

    rates: Values
    held: Values
    errors: Values  # standard errors of the change since the start
    start: float

    @cached_property
    def curve(self) -> Values:
        """The held loss, smoothed; infinite where it is not finite."""
        return np.where(np.isfinite(self.held), smooth(self.held), np.inf)

    @property
    def lowest(self) -> int:
        """Where the curve is lowest."""
        return int(np.argmin(self.curve))

    @property
    def fall(self) -> float:
        """From the start to the lowest point of the curve."""
        return float(self.start - self.curve[self.lowest])

    @property
    def error(self) -> float:
        """The standard error of the fall."""
        return float(self.errors[self.lowest])

    @property
    def diverges(self) -> float:
        """The first rate after the lowest point with a loss above the start; infinite if none."""
        after = self.lowest + 1
        over = self.curve[after:] > self.start + _OVER * self.error
        return float(self.rates[after + int(over.argmax())]) if over.any() else np.inf

    def fallen(self, share: float) -> float:
        """The first rate by which the curve has done this share of its fall."""
        done = self.curve[: self.lowest + 1] <= self.start - share * self.fall
        return float(self.rates[done.argmax()])


def _steepest(sweep: Sweep) -> float:
    """Where the curve falls fastest over the logarithm of the rate."""
    falling = slice(0, max(sweep.lowest + 1, 2))
    slope = np.gradient(sweep.curve[falling], np.log(sweep.rates[falling]))
    return float(sweep.rates[np.argmin(slope)])


def _valley(sweep: Sweep) -> float:
    """The middle of the longest falling subsequence of the curve, after fastai."""
    begin = int(np.searchsorted(sweep.rates, sweep.fallen(_BEGUN)))  # before, held losses creep
    curve, rates = sweep.curve[begin:], sweep.rates[begin:]
    longest = np.ones(len(curve), int)
    for at, value in enumerate(curve):
        longest[at] += longest[:at][curve[:at] > value].max(initial=0)
    end = int(longest.argmax())
    return float(rates[end - longest[end] // 2])


ESTIMATORS: Mapping[str, Callable[[Sweep], float]] = {
    "4/5 fallen / 2": lambda sweep: _PART * sweep.fallen(_DONE),
    "steepest": _steepest,
    "valley": _valley,
    "minimum / 10": lambda sweep: float(sweep.rates[sweep.lowest]) / 10,
    "divergence / 10": lambda sweep: sweep.diverges / 10,
}
OWN = next(iter(ESTIMATORS))


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
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
    trials: tuple[Trial, ...] = ()
    configured: Mapping[str, float] = field(default_factory=dict)  # "peak", "now", "given"

    @cached_property
    def problem(self) -> str:
        """Why nothing can be said; empty where something can."""
        if self.broken:
            return self.broken
        if self.trials:
            return self._problem_of_trials()
        fall, error = self.fall
        if not fall > _SURE * error:
            return (
                f"the loss falls at no rate by more than its noise: by {max(fall, 0):.2g}, with a"
                f" standard error of {error:.2g}"
            )
        own = self.rates(OWN)
        if max(own) > min(own) * 10**_APART:
            return f"the sweeps do not agree: {min(own):.2g} to {max(own):.2g}"
        return ""

    @cached_property
    def broken(self) -> str:
        """Why there is nothing to be seen in the sweeps, if so."""
        lowest = min((float(each.rates[0]) for each in self.sweeps if len(each.rates)), default=0.0)
        if not np.isfinite(self.start).all():
            return "the loss is not finite before any step"
        if not lowest:
            return "no step was made at any rate"
        if not self.moved:
            return "no weight changes at any rate"
        if any(not np.isfinite(each.held[0]) for each in self.sweeps):
            return f"the loss is not finite after one step at the lowest rate, {lowest:.2g}"
        if min(len(each.rates) for each in self.sweeps) < _FEWEST:
            return (
                f"the loss diverges within {_FEWEST} steps from the lowest rate, {lowest:.2g}:"
                " begin lower"
            )
        return ""

    @property
    def fall(self) -> tuple[float, float]:
        """By how much the loss falls in a sweep at most, and the standard error of that."""
        falls, errors = [each.fall for each in self.sweeps], [each.error for each in self.sweeps]
        return float(np.median(falls)), float(np.median(errors))

    def _problem_of_trials(self) -> str:
        error = self.error(self.best)
        if self.gain(self.best) > _SURE * error:
            return ""
        return (
            f"no short training gains more than its noise: {self.gain(self.best):.2g} at"
            f" {self.best.rate:.2g}, with a standard error of {error:.2g}"
        )

    @property
    def level(self) -> float:
        """The mean held loss before any step."""
        return float(self.start.mean())

    def gain(self, trial: Trial) -> float:
        """By how much a short training lowers the held loss."""
        return self.level - trial.level

    def error(self, trial: Trial) -> float:
        """The standard error of that, over the held batches."""
        gains = self.start - trial.end
        if not np.isfinite(gains).all():
            return np.inf
        return float(gains.std(ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else 0.0

    def rates(self, estimator: str) -> list[float]:
        """What an estimator says of each sweep."""
        return [ESTIMATORS[estimator](each) for each in self.sweeps]

    @property
    def centre(self) -> float:
        """What the sweeps alone suggest."""
        return float(np.exp(np.median(np.log(self.rates(OWN)))))

    @property
    def best(self) -> Trial:
        """The short training that ended lowest."""
        return min(self.trials, key=lambda each: each.level)

    @property
    def diverges(self) -> float:
        """From which rate on the loss ends above its start; infinite if none was found."""
        edge = float(np.median([each.diverges for each in self.sweeps]))
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
        worth = np.maximum(1 - short / (_WORSE * self.gain(self.best)), 0.0)
        fine = np.linspace(places[0], places[-1], 200)
        along = np.interp(fine, places, worth)
        centre = float((fine * along).sum() / along.sum())
        if np.interp(centre, fine, along) < 0.5:  # two hills: better the higher one than between
            centre = float(np.log(self.best.rate))
        good = fine[along >= 0.5]
        low, high = min(*good, centre), max(*good, centre)
        return Suggestion(*(float(np.exp(each)) for each in (centre, low, high)))

    def _near_the_best(self) -> list[Trial]:
        """The trials about the best without gaps: nothing is known of what lies in a gap."""
        rates = [each.rate for each in self.trials]
        first = last = self.trials.index(self.best)
        while first > 0 and rates[first] < _GAP * rates[first - 1]:
            first -= 1
        while last + 1 < len(rates) and rates[last + 1] < _GAP * rates[last]:
            last += 1
        return list(self.trials[first : last + 1])

    def trial_at(self, rate: float) -> Trial | None:
        """The short training at this rate, if there was one."""
        return next((each for each in self.trials if abs(each.rate / rate - 1) < 0.01), None)


def worth_sweeping(ladder: Values, first: Sweep) -> Values:
    """The rates at which a further sweep may see something: a decade under the fall and up."""
    if not len(first.rates) or not first.fall > first.error:
        return ladder
    return ladder[ladder > first.fallen(_BEGUN) / 10]


def candidates(test: RangeTest, count: int) -> list[float]:
    """Rates to try: about what the sweeps suggest, or far apart where they suggest nothing."""
    fall, error = test.fall
    if fall > error:
        return [test.centre * _STEP ** (at - (count - 1) / 2) for at in range(count)]
    highest = min(test.diverges, max(float(each.rates[-1]) for each in test.sweeps))
    return [highest / _WIDE ** (at + 1) for at in reversed(range(count))]


def another(test: RangeTest) -> float | None:
    """A rate to try next: past the outermost if that did best, or in a gap beside the best."""
    rates = [each.rate for each in test.trials]
    best = rates.index(test.best.rate)
    if best == 0:
        return rates[0] / _STEP
    if best == len(rates) - 1:
        return rates[-1] * _STEP
    beside = min((best - 1, best + 1), key=lambda at: test.trials[at].level)
    low, high = sorted((rates[best], rates[beside]))
    return float(np.sqrt(low * high)) if high > _GAP * low else None


def read(run: Run) -> RangeTest:
    """The range test that a run holds."""
    rates = run[LR_RANGE_RATE]
    start = run[LR_RANGE_START][""].values.astype(float)
    sweeps, trials = [], []
    for name, rate in rates.items():
        if name.startswith(SWEEP):
            held, errors = (run[each][name].values for each in (LR_RANGE_HELD, LR_RANGE_ERROR))
            sweeps.append(
                Sweep(
                    rate.values.astype(float),
                    held.astype(float),
                    errors.astype(float),
                    float(start.mean()),
                )
            )
        elif name.startswith(CONFIRM):
            end = run[LR_RANGE_END][name].values.astype(float)
            trials.append(Trial(name, float(rate.values[-1]), end))
    moved = [float(each.values[-1]) for name, each in run[LR_RANGE_MOVED].items()]
    return RangeTest(
        start,
        tuple(sweeps),
        max(moved, default=0.0),
        tuple(sorted(trials, key=lambda each: each.rate)),
        {name: float(each.values[-1]) for name, each in run[LR_RANGE_CONFIGURED].items()},
    )
