"""A sweep of learning rates as a curve, and estimators of the rate that suits, on log-LR."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from holter.diagnosis.facts.robust import Values

_OVER = 2.0  # standard errors by which a loss has to rise to be above its start
BEGUN = 0.02  # share of the fall before which the curve is taken for flat
# Over 26 small trainings, half of them with small batches and wrong labels, the rate that trained
# best was half of that by which a sweep had done four fifths of its fall, up to a factor of 2.3.
_DONE, _PART = 0.8, 0.5


def smooth(values: Values) -> Values:
    """Medians of five, then means of three; what is not finite is left out and spreads nowhere."""
    known = np.where(np.isfinite(values), values, np.nan)
    return _running(_running(known, 2, np.nanmedian), 1, np.nanmean)


def _running(values: Values, reach: int, of: Callable[[Values], float]) -> Values:
    parts = (values[max(at - reach, 0) : at + reach + 1] for at in range(len(values)))
    return np.array([of(part) if np.isfinite(part).any() else np.nan for part in parts])


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
    begin = int(np.searchsorted(sweep.rates, sweep.fallen(BEGUN)))  # before, held losses creep
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
