"""The course of a loss curve: whether it fell, stayed level, rose again or jumped."""

from dataclasses import dataclass

import numpy as np

from holter.diagnosis.facts.curve import Curve, levels
from holter.diagnosis.facts.robust import Values, midmean, midmean_error, noise

FEWEST = 20  # losses that make a curve

_PIECES = 10  # into which the curve is cut
_TAIL = 3  # pieces at the end that show its trend
_NO_FALL = 0.02  # smallest fall of a loss, as a share of its start
_REGAINED = 0.5  # share of its fall that a loss which rose again has regained
_RECOVERED = 0.5  # share of its rise that a loss which falls again has made up for
_STAYED = 0.9  # share of its start that a flat loss keeps, however noisy it is
_BACK = 0.9  # share of its first value above which a loss that jumped has lost all progress
_FELL = 0.9  # share of its start below which a loss that rose again had learned something
_ENDING = 5  # last losses
_FAR = 10.0  # times its start from which a loss that falls is still lost
_ROSE = 1.25  # times its start that a loss which diverges reaches


@dataclass(frozen=True, slots=True)
class Course:
    """Where a curve began, its best, highest and last level, and what that amounts to."""

    curve: Curve
    start: float
    best: float
    high: float  # after the best
    last: float
    first: float  # the very first loss
    top: float  # of the first steps
    visible: float  # smallest change that is more than noise
    jumped: bool  # within the first steps
    level: bool  # all along
    falls: bool  # at the end
    left: bool  # the last losses are far above all those of the first half

    @property
    def fall(self) -> float:
        """By which share of its start the loss fell."""
        return (self.start - self.last) / max(abs(self.start), 1e-30)

    @property
    def fell(self) -> bool:
        """Whether the loss surely fell and stayed low, whatever its sign."""
        way = self.start - self.best
        return self.start - self.last > self.visible and self.last - self.best < way / 4

    @property
    def lost_progress(self) -> bool:
        """Whether the loss jumped at once and never came back below its first value."""
        return self.jumped and self.last > _BACK * self.first and not self.is_on_its_way

    @property
    def rose(self) -> bool:
        """Whether the loss ends far above its best, and has not fallen again."""
        if self.left:  # however noisy: a loss that grows many times over in a few steps is
            return True
        height = self.last - self.best
        if height <= max(self.visible, _REGAINED * (self.start - self.best)):
            return False
        if self.is_on_its_way:
            return False
        recovered = self.high - self.last > _RECOVERED * (self.high - self.best)
        return not (recovered and self.improved)

    @property
    def is_on_its_way(self) -> bool:
        """Whether the loss falls at the end, and is not lost."""
        return self.falls and self.last < _FAR * abs(self.start)

    @property
    def improved(self) -> bool:
        """Whether the loss ends surely below its start."""
        return self.last < self.start - self.visible

    @property
    def surely_rose(self) -> bool:
        """Whether the loss ends far above its start as well."""
        return self.rose and self.last - self.start > (_ROSE - 1) * abs(self.start)

    @property
    def had_learned(self) -> bool:
        """Whether the loss had fallen before it rose."""
        return self.start - self.best > (1 - _FELL) * abs(self.start)

    @property
    def is_extreme(self) -> bool:
        """Whether no other task explains where the loss ends."""
        ends_high = self.rose and self.last > _FAR * abs(self.start)
        return ends_high or self.lost_progress or bool(np.ptp(self.curve.values) == 0)

    @property
    def is_bad(self) -> bool:
        """Whether the curve alone shows a failure."""
        return self.lost_progress or self.rose or self.level

    def says(self, name: str = "loss", *, diverged: bool) -> str:
        """Return the course of the loss of that name in a phrase."""
        if self.lost_progress:
            return f"{name} jumped {self.first:.3g} → {self.top:.3g} and ended at {self.last:.3g}"
        if diverged and self.had_learned:
            return f"{name} fell {self.start:.3g} → {self.best:.3g}, then rose to {self.last:.3g}"
        if self.level:
            first, last = self.curve.span
            return f"{name} stayed at {self.last:.3g} for {last - first + 1:,} steps"
        if self.is_on_its_way and self.last > self.start:
            return f"{name} rose {self.best:.3g} → {self.high:.3g}, then fell to {self.last:.3g}"
        return f"{name} {self.start:.3g} → {self.last:.3g}"


def course_of(curve: Curve) -> Course:
    """Return the course of a finite curve of at least `FEWEST` losses."""
    values, cut = curve.values, levels(curve, _PIECES)
    end = curve.part(0.8)
    last = midmean(end if len(end) >= FEWEST // 2 else values[-FEWEST // 2 :])
    first, best = float(values[0]), float(cut.values.min())
    start = top = max(float(np.median(values[:5])), float(cut.values[0]))
    jumped = _surely_above(values, start, first)
    if jumped:  # within the first steps: before them the loss was at `first`
        start = first
    visible = max(4 * float(cut.own_errors.max()), _NO_FALL * abs(start))
    tail = cut.values[-_TAIL:]
    is_kept = last >= start - (1 - _STAYED) * abs(start)
    level = np.ptp(cut.values) <= visible and is_kept and not jumped
    return Course(
        curve,
        start,
        best,
        float(cut.values[int(cut.values.argmin()) :].max()),
        last,
        first,
        top,
        visible,
        jumped,
        bool(level and not _improves(curve, cut.noise)),
        bool(tail[0] - tail[-1] > visible and (np.diff(tail) < 0).all()),
        bool(values[-_ENDING:].min() > _FAR * np.abs(values[: len(values) // 2]).max()),
    )


def _improves(curve: Curve, sigma: float) -> bool:
    """Return whether the loss falls slowly, but by more than its noise and by enough to matter."""
    early, late = curve.part(0, 1 / 3), curve.part(2 / 3)
    fall = midmean(early) - midmean(late)
    error = midmean_error(sigma, len(early), len(late))
    return fall > max(3 * error, _NO_FALL / 2 * abs(midmean(early)))


def _surely_above(values: Values, level: float, first: float) -> bool:
    """Return whether a level is above the first loss by more than the noise of one loss.

    Compare logarithms: a loss that explodes has no other scale.
    """
    if first <= 0 or values.min() <= 0:
        return False
    sigma = noise(np.array_split(np.log(values), _PIECES))
    return float(np.log(level / first)) > 3 * sigma + float(np.log(1.5))
