"""How far a model has fitted a few samples: from the best constant prediction to the floor."""

from dataclasses import dataclass

import numpy as np

from holter.diagnosis.facts.robust import Values
from holter.record import Run
from holter.record.signals import (
    OVERFIT_CONSTANT,
    OVERFIT_FLOOR,
    OVERFIT_FREE_FLOOR,
    OVERFIT_LOSS,
    OVERFIT_NOISE,
    Signal,
)
from holter.record.trials import UNCHANGED, TrialName

AS_IT_IS = UNCHANGED  # the trial without a change
REACHED = 0.9  # share of the way at which samples count as memorised
ALIKE = 1e-3  # relative spread of predictions below which they are the same for all samples
FAR = 100_000  # steps: a loss that needs more at its present pace does not arrive
_WINDOW = 5  # neighbouring losses whose median is a level
_NOISY_WINDOW = 15  # the same if the step draws random numbers
_SLOWER = 0.2  # of its mean pace: a loss that falls more slowly has reached a plateau
_SAME = 1e-3  # relative difference at which a constant prediction counts as the best one
_SOON = 3  # times the steps made that a loss may still need at its last pace


@dataclass(frozen=True, slots=True)
class Aim:
    """The way that a loss can go: `reference` is share 0 of it, `least` is share 1."""

    reference: float
    least: float
    noise: float = 0.0  # of a loss of the same weights and samples

    @classmethod
    def of(
        cls, start: float, least: float | None, constant: float | None, noise: float = 0.0
    ) -> "Aim":
        """Return the way from the best constant prediction to the floor.

        It begins at the first loss if the constant prediction is unknown or already the best; an
        unknown floor is taken to be 0.
        """
        floor = 0.0 if least is None else least
        if constant is None or one_answer(constant, floor):
            return cls(start, floor, noise)
        return cls(constant, floor, noise)

    def share(self, loss: float) -> float:
        """Return the share of the way at which a loss is."""
        way = self.reference - self.least
        return (self.reference - loss) / way if way > 0 else 0.0

    @property
    def window(self) -> int:
        """The number of neighbouring losses whose median is a level."""
        return _NOISY_WINDOW if self.noise > 0 else _WINDOW

    @property
    def goal(self) -> float:
        """The loss at which the samples count as memorised."""
        return self.reference - REACHED * (self.reference - self.least)


@dataclass(frozen=True, slots=True)
class Fit:
    """A loss curve: `best` is its lowest level, `ahead` the steps needed at its last pace."""

    start: float
    best: float
    last: float
    steps: int
    share: float
    ahead: float
    falls: bool  # it only needs more steps
    lost: bool  # it ended in NaN or infinity

    @property
    def fits(self) -> bool:
        """Whether the samples were memorised."""
        return self.share >= REACHED


@dataclass(frozen=True, slots=True)
class FitTrial:
    """A trial of a run, with what it aims at."""

    change: TrialName
    aim: Aim
    fit: Fit

    @property
    def name(self) -> str:
        """The owner of its readings."""
        return str(self.change)


def trials(run: Run) -> list[FitTrial]:
    """Return all trials in the order in which they were run."""
    found = []
    noise = value(run, OVERFIT_NOISE, AS_IT_IS) or 0.0
    for name, series in run[OVERFIT_LOSS].items():
        own = name if _has_own_floor(run, name) else AS_IT_IS  # of other samples
        losses = series.values.astype(np.float64)
        aim = Aim.of(float(losses[0]), floor(run, own), value(run, OVERFIT_CONSTANT, own), noise)
        found.append(FitTrial(TrialName.parse(name), aim, measure(losses, aim)))
    return found


def floor(run: Run, trial: str) -> float | None:
    """Return the lowest possible loss, computed or else estimated, or None."""
    computed = value(run, OVERFIT_FLOOR, trial)
    return value(run, OVERFIT_FREE_FLOOR, trial) if computed is None else computed


def value(run: Run, signal: Signal, trial: str) -> float | None:
    """Return the last reading of a trial, or None."""
    if signal not in run or trial not in run[signal]:
        return None
    return float(run[signal][trial].values[-1])


def one_answer(constant: float, least: float) -> bool:
    """Whether a constant prediction is the best there is."""
    return constant - least <= _SAME * max(abs(constant), abs(least))


def measure(values: Values, aim: Aim) -> Fit:
    """Summarise a loss curve."""
    finite = values[np.isfinite(values)]
    lost = len(finite) < len(values)
    if not len(finite):
        return Fit(np.nan, np.nan, np.nan, len(values), 0.0, np.inf, falls=False, lost=True)
    levels = _levels(finite, aim.window)
    best = float(levels.min())
    pace, usual = _pace(finite, levels, aim.noise)
    ahead = max(float(levels[-1]) - aim.goal, 0.0) / pace if pace > 0 else np.inf
    steady = pace >= _SLOWER * usual > 0
    return Fit(
        start=float(finite[0]),
        best=best,
        last=float(levels[-1]),
        steps=len(values),
        share=aim.share(best),
        ahead=ahead,
        falls=not lost and pace > 0 and (steady or ahead < _SOON * len(finite)),
        lost=lost,
    )


def _has_own_floor(run: Run, trial: str) -> bool:
    return any(s in run and trial in run[s] for s in (OVERFIT_FLOOR, OVERFIT_FREE_FLOOR))


def _levels(values: Values, window: int) -> Values:
    """Return the medians of neighbouring losses."""
    window = min(window, len(values))
    neighbours = np.lib.stride_tricks.sliding_window_view(values, window)
    return np.asarray(np.median(neighbours, axis=1), np.float64)


def _pace(values: Values, levels: Values, noise: float) -> tuple[float, float]:
    """Return the fall per step over the last quarter and over the whole curve."""
    half = max(len(values) // 8, 1)
    late, before = values[-half:], values[-2 * half : -half]
    fall = float(np.median(before) - np.median(late)) if len(before) else 0.0
    if fall < 2 * 1.25 * noise * np.sqrt(2 / half):  # it may be chance
        fall = 0.0
    return fall / half, float(levels[0] - levels[-1]) / len(values)
