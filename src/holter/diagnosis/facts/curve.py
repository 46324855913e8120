"""Loss curves in numbers: levels, noise and trend, and the learning rate beside them."""

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts.reduction import per_batch
from holter.diagnosis.facts.robust import Values, midmean, midmean_error, noise
from holter.diagnosis.facts.trained import trained_loss
from holter.record import Series
from holter.record.events import PassBegan
from holter.record.signals import LR, Signal

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_OWN_NOISE = 8  # losses of a piece that tell its noise
_NOISIER = 1.5  # times the noise of all pieces that is more than chance
_LINE = 8192  # windows of a running median that are sorted at a time


@dataclass(frozen=True, slots=True)
class Curve:
    """The finite losses of the only optimizer, by step; sums as if all batches were equal."""

    owner: str
    steps: npt.NDArray[np.int64]
    values: Values

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last step."""
        return int(self.steps[0]), int(self.steps[-1])

    @property
    def changes_sign(self) -> bool:
        """Whether the loss has values on both sides of zero, and so no lower bound at zero."""
        return bool(self.values.min() < 0 < self.values.max())

    def place(self, share: float) -> int:
        """Return the index of the first loss after this share of the steps."""
        first, last = self.span
        return int(np.searchsorted(self.steps, first + share * (last + 1 - first)))

    def part(self, begin: float, end: float = 1.0) -> Values:
        """Return the losses from one share of the steps to another."""
        return self.values[self.place(begin) : self.place(end)]

    def since(self, index: int) -> "Curve":
        """Return the curve from this index on."""
        return Curve(self.owner, self.steps[index:], self.values[index:])

    def until(self, index: int) -> "Curve":
        """Return the curve up to, not including, this index."""
        return Curve(self.owner, self.steps[:index], self.values[:index])


def curve_of(owner: str, loss: Series) -> Curve:
    """Return the finite losses as a curve."""
    kept = np.isfinite(loss.values)
    return Curve(owner, loss.steps[kept], loss.values[kept].astype(np.float64))


def training_curve(facts: "Facts", *, may_change_sign: bool = False) -> Curve | str:
    """Return the curve of the loss that has to fall, or the reason why there is none to judge."""
    trained = trained_loss(facts)
    if isinstance(trained, str):
        return trained
    owner, loss = trained
    curve = curve_of(owner, per_batch(facts, loss))
    if facts.no_order is not None:
        return facts.no_order
    if not may_change_sign and len(curve) and curve.changes_sign:
        return "the loss changes sign, so it has no lower bound to fall to"
    return curve


@dataclass(frozen=True, slots=True)
class Levels:
    """A curve cut into pieces of equally many steps: the level of each and its standard error."""

    steps: npt.NDArray[np.int64]  # the first step of each piece
    values: Values
    errors: Values  # by the noise of all pieces
    own_errors: Values  # by the noise of each piece, where that is far larger
    noise: float  # standard deviation of one loss about its piece


def levels(curve: Curve, pieces: int) -> Levels:
    """Return the midmean of each of `pieces` pieces; pieces without a loss are left out."""
    edges = [curve.place(number / pieces) for number in range(pieces + 1)]
    parts = [(start, stop) for start, stop in itertools.pairwise(edges) if stop > start]
    cut = [curve.values[start:stop] for start, stop in parts]
    sigma = noise(cut)
    return Levels(
        curve.steps[[start for start, _ in parts]],
        np.array([midmean(piece) for piece in cut]),
        np.array([midmean_error(sigma, len(piece)) for piece in cut]),
        np.array([midmean_error(_own_noise(piece, sigma), len(piece)) for piece in cut]),
        sigma,
    )


def _own_noise(piece: Values, sigma: float) -> float:
    """Return the noise of a piece: its own if it is far above `sigma`, that of all pieces.

    Losses become noisier as predictions vary. Differences of neighbours leave out a trend.
    """
    if len(piece) < _OWN_NOISE:
        return sigma
    own = noise([np.diff(piece)]) / float(np.sqrt(2))
    return own if own > _NOISIER * sigma else sigma


@dataclass(frozen=True, slots=True)
class Settled:
    """The level at which a curve ends, and since which step."""

    since: int
    share: float  # of all steps
    level: float
    error: float


def settled(curve: Curve, *, pieces: int = 20, tolerance: float = 0.01) -> Settled | None:
    """Return the longest level end of a curve, or None where the end is not level.

    The halves of that end must agree to a quarter of `tolerance`, so that no slow drift counts as
    level. Where noise would hide a change of `tolerance`, the answer is None as well.
    """
    cut = levels(curve, pieces)
    level = midmean(curve.part(0.75))
    apart = np.abs(cut.values - level) > np.maximum(4 * cut.errors, tolerance * abs(level))
    count = len(apart) - (int(np.flatnonzero(apart)[-1]) + 1 if apart.any() else 0)
    if not count:
        return None
    begin = int(np.searchsorted(curve.steps, cut.steps[-count]))
    end = curve.since(begin)
    early, late = end.part(0, 0.5), end.part(0.5)
    if min(len(early), len(late)) < 4:
        return None
    error = midmean_error(cut.noise, len(early), len(late))
    drift = abs(midmean(early) - midmean(late))
    if error > tolerance * abs(level) or drift > max(3 * error, tolerance / 4 * abs(level)):
        return None
    first, last = curve.span
    share = (last - int(cut.steps[-count])) / max(last - first, 1)
    return Settled(int(cut.steps[-count]), share, level, midmean_error(cut.noise, len(end)))


def running_median(values: Values, width: int) -> Values:
    """Return the median of each `width` successive values, in bounded memory."""
    windows = np.lib.stride_tricks.sliding_window_view(values, width)
    parts = [
        np.median(windows[start : start + _LINE], axis=1) for start in range(0, len(windows), _LINE)
    ]
    return np.concatenate(parts) if parts else np.empty(0)


def rates(facts: "Facts", steps: npt.NDArray[np.int64]) -> Values:
    """Return the largest learning rate of all groups at each step; 0 where unknown."""
    rate = np.zeros(len(steps))
    for group in facts.run[LR].values() if LR in facts.run else ():
        if len(group):
            at = np.searchsorted(group.steps, steps, "right") - 1
            last_set = np.where(at >= 0, group.values[at], 0)
            rate = np.fmax(rate, np.where(np.isfinite(last_set), last_set, 0))
    return rate


def warmed_up(facts: "Facts", curve: Curve) -> int | None:
    """Return the index at which the learning rate reached half its peak, None while it rises."""
    if LR not in facts.run or not len(curve):
        return 0
    rate = rates(facts, curve.steps)
    peak = rate.max()
    reached = int((rate >= 0.99 * peak).argmax())
    if peak > 1.5 * rate[0] and rate[-1] >= 0.99 * peak and reached > len(curve) * 2 // 3:
        return None
    return int((rate >= peak / 2).argmax())


def rate_left(facts: "Facts", curve: Curve) -> float | None:
    """Return the last learning rate over the largest one, or None if unknown."""
    rate = rates(facts, curve.steps)
    return float(rate[-1] / rate.max()) if len(rate) and rate.max() > 0 else None


def epoch_steps(facts: "Facts") -> int | None:
    """Return the number of steps in a pass over the training data, or None without a loader.

    The loader whose passes start at the most different steps is the training loader, or one that
    is passed over as often.
    """
    starts: dict[str, list[int]] = {}
    for event in facts.run.events_of(PassBegan):
        starts.setdefault(event.what.loader, []).append(event.step)
    longest = max((np.unique(steps) for steps in starts.values()), key=len, default=np.empty(0))
    return int(np.median(np.diff(longest))) if len(longest) > 2 else None


def growth(
    facts: "Facts", signal: Signal, owner: str, before: tuple[int, int], after: tuple[int, int]
) -> float | None:
    """Return the median of a signal in the steps `after` over that in `before`, or None."""
    if signal not in facts.run or not (series := facts.run[signal].get(owner)):
        return None
    readings = [
        series.values[(series.steps >= first) & (series.steps <= last)]
        for first, last in (before, after)
    ]
    early, late = (values[np.isfinite(values)] for values in readings)
    if not len(early) or not len(late) or np.median(early) <= 0:
        return None
    return float(np.median(late) / np.median(early))
