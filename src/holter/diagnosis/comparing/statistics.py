"""Means of few runs: intervals, and whether a difference is larger than the noise between seeds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_RESAMPLES = 10_000  # of a bootstrap
_FEWEST = 3  # values that are worth resampling
_POWER = 0.8
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Interval:
    """A range with its level of confidence."""

    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether all of it is above, or all below 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class Sample:
    """The mean of some values, their standard deviation, and the t interval of the mean."""

    count: int
    mean: float
    std: float | None = None  # None for a single value
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Contrast:
    """The difference of two means, second minus first, by Welch's test and by a bootstrap."""

    difference: float
    interval: Interval
    p: float
    bootstrap: Interval | None  # None for fewer than three values on a side
    enough: int | None  # values a side that would show this difference; None if it is shown or 0


def summarise(values: Sequence[float], *, level: float = 0.95) -> Sample:
    """Return mean, standard deviation and interval of finite values; there must be one."""
    array = np.asarray(values, np.float64)
    count, mean = len(array), float(array.mean())
    if count < 2:
        return Sample(count, mean)
    std = float(array.std(ddof=1))
    reach = t_quantile(0.5 + level / 2, count - 1) * std / math.sqrt(count)
    return Sample(count, mean, std, Interval(mean - reach, mean + reach))


def contrast(a: Sequence[float], b: Sequence[float], *, level: float = 0.95) -> Contrast | None:
    """Compare two groups of values; None where one has fewer than two."""
    if min(len(a), len(b)) < 2:
        return None
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    parts = first.var(ddof=1) / len(first), second.var(ddof=1) / len(second)
    difference, variance = float(second.mean() - first.mean()), float(sum(parts))
    if variance <= 0:  # every value of a group is the same
        return Contrast(
            difference, Interval(difference, difference), float(not difference), None, None
        )
    freedom = variance**2 / sum(
        float(part) ** 2 / (len(group) - 1)
        for part, group in zip(parts, (first, second), strict=True)
    )
    error = math.sqrt(variance)
    reach = t_quantile(0.5 + level / 2, freedom) * error
    interval = Interval(difference - reach, difference + reach)
    p = 2 * (1 - t_cdf(abs(difference) / error, freedom))
    spread = math.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2)
    return Contrast(
        difference,
        interval,
        p,
        _bootstrap(first, second, level),
        None if interval.excludes_zero else _enough(difference, spread, level),
    )


def t_cdf(t: float, freedom: float) -> float:
    """Return the probability that a Student t variable is at most `t`."""
    tail = 0.5 * _beta_share(freedom / (freedom + t * t), freedom / 2, 0.5)
    return 1 - tail if t > 0 else tail


def t_quantile(p: float, freedom: float) -> float:
    """Return the value that a Student t variable is below with probability `p`, above 0.5."""
    low, high = 0.0, 1.0
    while t_cdf(high, freedom) < p:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if t_cdf(middle, freedom) < p else (low, middle)
    return high


def _bootstrap(
    a: np.ndarray[tuple[int], np.dtype[np.float64]],
    b: np.ndarray[tuple[int], np.dtype[np.float64]],
    level: float,
) -> Interval | None:
    """Return the percentile interval of the difference over resampled groups."""
    if min(len(a), len(b)) < _FEWEST:
        return None
    draw = np.random.default_rng(0)  # the same values give the same interval
    differences = draw.choice(b, (_RESAMPLES, len(b))).mean(1) - draw.choice(
        a, (_RESAMPLES, len(a))
    ).mean(1)
    low, high = np.quantile(differences, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(float(low), float(high))


def _enough(difference: float, spread: float, level: float) -> int | None:
    """Return how many values a side show such a difference with a probability of 80 %."""
    if not difference:
        return None
    reach = t_quantile(0.5 + level / 2, 1e6) + t_quantile(_POWER, 1e6)  # a normal distribution
    return math.ceil(2 * (reach * spread / difference) ** 2)


def _beta_share(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_share(1 - x, b, a)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    result = c = 1.0
    d = 0.0
    for step in range(300):
        half = step // 2
        if step == 0:
            factor = 1.0
        elif step % 2:
            factor = -(a + half) * (a + b + half) * x / ((a + step - 1) * (a + step))
        else:
            factor = half * (b - half) * x / ((a + step - 1) * (a + step))
        d = 1 / _away_from_zero(1 + factor * d)
        c = _away_from_zero(1 + factor / c)
        result *= c * d
        if abs(1 - c * d) < 1e-12 and step:
            break
    return front * (result - 1) / a


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
