"""How a loss went on after something happened to the training."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.robust import Values, midmean, midmean_error, noise
from holter.record import Series
from holter.record.signals import ACCURACY, BETA2, EPSILON, LOSS, UPDATE_RATIO

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_FEWEST = 5  # losses that make a level
_LOW = 0.2  # share of its start under which a loss has come far enough


def falling_loss(facts: "Facts") -> Series | None:
    """The finite losses of a training whose loss has to fall; None where it need not.

    Losses of several optimizers may compete, and one that changes its sign has no floor.
    """
    owners = [each for each in facts.run[LOSS].values() if len(each)] if LOSS in facts.run else []
    if len(owners) != 1:
        return None
    kept = np.isfinite(owners[0].values)
    finite = Series(owners[0].steps[kept], owners[0].values[kept].astype(np.float64))
    if not len(finite) or finite.values.min() < 0:
        return None
    return finite


def level(loss: Series, first: float, last: float) -> float | None:
    """The level of the losses from step `first` up to, not including, `last`."""
    inside = _between(loss, first, last)
    return midmean(inside) if len(inside) >= _FEWEST else None


@dataclass(frozen=True, slots=True)
class Halt:
    """A loss that came to a halt: its levels at the start, at the step in question, and after."""

    start: float
    before: float
    after: float

    def __str__(self) -> str:
        return f"{self.start:.4g} at first, {self.before:.4g} by then, {self.after:.4g} at the end"


def halted(facts: "Facts", loss: Series, weak: int, gone: int) -> Halt | None:
    """Whether the loss stopped where learning grew `weak` at one step and was `gone` at another.

    Losses fall by about as much from each doubling of the steps to the next. One that fell over the
    last doubling before `weak`, was still falling in its second half, and falls by less than half
    of what this promises after `gone`, was stopped. Where there was no time to fall before, it has
    to have stayed at more than half of its start. None if not, or if it cannot be told.
    """
    start = level(loss, 0, max(weak, 2 * _FEWEST) / 4 + _FEWEST)
    rest = _between(loss, gone, facts.run.steps)
    if start is None or len(rest) < 2 * _FEWEST or _right(facts):
        return None
    first, last = np.array_split(rest, 2)
    after, fallen = midmean(last), midmean(first) - midmean(last)
    if after < _LOW * start:
        return None
    earlier, before = _between(loss, weak / 4, weak / 2), _between(loss, weak / 2, weak)
    if len(earlier) < _FEWEST or len(before) < 2 * _FEWEST:
        flat = abs(fallen) < 0.05 * start
        return Halt(start, start, after) if flat and 0.5 * start < after < 1.5 * start else None
    fall = midmean(earlier) - midmean(before)
    error = midmean_error(noise([earlier, before]), len(earlier), len(before))
    third, fourth = np.array_split(before, 2)
    if fall < 3 * error or midmean(third) - midmean(fourth) < 0.2 * fall:  # at rest before
        return None
    length = facts.run.steps - gone
    doublings = np.log2((gone + 0.75 * length) / (gone + 0.25 * length))
    lost = fall * np.log2(facts.run.steps / weak)
    unsure = midmean_error(noise([first, last]), len(first), len(last))
    if lost < 0.1 * after or max(fallen, 2 * unsure) > fall * doublings / 2:
        return None
    return Halt(start, midmean(fourth), after)


def median_update(facts: "Facts", first: int, last: int) -> float | None:
    """The usual relative update of a parameter between two steps; None where none was sampled."""
    if UPDATE_RATIO not in facts.run:
        return None
    rows = facts.run[UPDATE_RATIO].rows(first, last)
    ratios = rows.values[rows.present & np.isfinite(rows.values)]
    return float(np.median(ratios)) if len(ratios) else None


def steps_follow_gradients(facts: "Facts") -> bool:
    """Whether a gradient half as large makes a step half as large, as in SGD and not in Adam."""
    classes = [optimizer.class_name for optimizer in facts.run.meta.optimizers]
    if classes:
        return all("SGD" in each for each in classes)
    return BETA2 not in facts.run and EPSILON not in facts.run


def _right(facts: "Facts") -> bool:
    """Whether nearly all training targets are predicted right at last: little is left to learn."""
    if ACCURACY not in facts.run:
        return False
    finals = [each.values[-len(each) // 4 :] for each in facts.run[ACCURACY].values() if len(each)]
    return bool(finals) and min(float(np.median(each)) for each in finals) > 0.95


def _between(loss: Series, first: float, last: float) -> Values:
    return np.asarray(loss.values[(loss.steps >= first) & (loss.steps < last)], np.float64)
