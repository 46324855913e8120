"""How a loss went on after something happened to the training, and what holds it back."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.label_trials import TELLS, LabelTrials
from holter.diagnosis.facts.robust import Values, midmean, midmean_error, noise
from holter.diagnosis.facts.trained import trained_loss
from holter.record import Series
from holter.record.findings import Evidence
from holter.record.signals import (
    ACCURACY,
    BETA2,
    EPSILON,
    LABEL_FIT,
    LABEL_HELD_OUT,
    UPDATE_RATIO,
)

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_FEWEST = 5  # losses that make a level
_LOW = 0.2  # share of its start below which a loss has come far enough
_RECENT = 200  # last steps whose updates count
_FEWEST_RECENT = 5  # updates that count however far back they are


def falling_loss(facts: "Facts") -> Series | None:
    """Return the finite losses of a training whose loss has to fall, or None.

    The losses of several optimizers may compete, and a negative loss has no known lower bound.
    """
    trained = trained_loss(facts)
    if isinstance(trained, str):
        return None
    loss = trained[1]
    kept = np.isfinite(loss.values)
    finite = Series(loss.steps[kept], loss.values[kept].astype(np.float64))
    if not len(finite) or finite.values.min() < 0 or facts.no_order is not None:
        return None
    return finite


def level(loss: Series, first: float, last: float) -> float | None:
    """Return the level of the losses from step `first` up to, not including, `last`, or None."""
    inside = _between(loss, first, last)
    return midmean(inside) if len(inside) >= _FEWEST else None


@dataclass(frozen=True, slots=True)
class Halt:
    """A loss that stopped falling: its levels at the start, at the step in question, and after."""

    start: float
    before: float
    after: float

    def __str__(self) -> str:
        return f"{self.start:.3g} initially, {self.before:.3g} by then, {self.after:.3g} at the end"


def halted(facts: "Facts", loss: Series, weak: int, gone: int) -> Halt | None:
    """Return how the loss stopped after learning grew `weak` and was `gone`, or None if it did not.

    Losses fall by about as much in each doubling of the steps. A loss was stopped if it fell over
    the last doubling before step `weak`, was still falling in its second half, and falls by less
    than half of the extrapolation after step `gone`. Where there was no time to fall before, it
    must have stayed above half of its start.
    """
    start = level(loss, 0, max(weak, 2 * _FEWEST) / 4 + _FEWEST)
    rest = _between(loss, gone, facts.run.steps)
    if start is None or len(rest) < 2 * _FEWEST or _nearly_all_correct(facts):
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
    if fall < 3 * error or midmean(third) - midmean(fourth) < 0.2 * fall:  # level before
        return None
    length = facts.run.steps - gone
    doublings = np.log2((gone + 0.75 * length) / (gone + 0.25 * length))
    lost = fall * np.log2(facts.run.steps / weak)
    unsure = midmean_error(noise([first, last]), len(first), len(last))
    if lost < 0.1 * after or max(fallen, 2 * unsure) > fall * doublings / 2:
        return None
    return Halt(start, midmean(fourth), after)


def median_update(facts: "Facts", first: int, last: int | None = None) -> float | None:
    """Return the median relative update of all parameters between two steps, or None."""
    if UPDATE_RATIO not in facts.run:
        return None
    rows = facts.run[UPDATE_RATIO].rows(first, last)
    ratios = rows.values[rows.present & np.isfinite(rows.values)]
    return float(np.median(ratios)) if len(ratios) else None


def recent_update(facts: "Facts") -> float | None:
    """Return the median relative update of all parameters in the last steps, or None."""
    return median_update(facts, recent(facts)[0])


def recent(facts: "Facts") -> tuple[int, int]:
    """Return the first and last step that `recent_update` covers."""
    first = max(facts.run.steps - _RECENT, 0)
    if UPDATE_RATIO in facts.run:
        # Of long runs updates are sampled, all at the same steps: some of them count at least.
        one = next((series for series in facts.run[UPDATE_RATIO].values() if len(series)), None)
        first = first if one is None else min(first, int(one.steps[-_FEWEST_RECENT:][0]))
    return first, facts.run.steps - 1


def learning_in_the_lab(facts: "Facts") -> Evidence | None:
    """Return the trial in which the same training step learned from true labels, or None."""
    if LABEL_HELD_OUT not in facts.run or "true" not in facts.run[LABEL_HELD_OUT]:
        return None
    held_out = LabelTrials(facts.run, LABEL_HELD_OUT)
    if not held_out.score > TELLS:
        return None
    steps = len(facts.run[LABEL_FIT]["true"])
    return Evidence(
        LABEL_HELD_OUT,
        (0, len(facts.run[LABEL_HELD_OUT]["true"]) - 1),
        f"repeated alone, the step learns within {steps} steps: held-out loss {held_out.true:.3g},"
        f" with shuffled labels {held_out.shuffled:.3g}",
        "true",
    )


def steps_follow_gradients(facts: "Facts") -> bool:
    """Return whether half the gradient gives half the step, as with SGD but not with Adam."""
    classes = [optimizer.class_name for optimizer in facts.run.meta.optimizers]
    if classes:
        return all("SGD" in name for name in classes)
    return BETA2 not in facts.run and EPSILON not in facts.run


def _nearly_all_correct(facts: "Facts") -> bool:
    """Return whether nearly all training targets are predicted correctly at the end."""
    if ACCURACY not in facts.run:
        return False
    accuracies = [series for series in facts.run[ACCURACY].values() if len(series)]
    finals = [float(np.median(series.values[-len(series) // 4 :])) for series in accuracies]
    return bool(finals) and min(finals) > 0.95


def _between(loss: Series, first: float, last: float) -> Values:
    return np.asarray(loss.values[(loss.steps >= first) & (loss.steps < last)], np.float64)
