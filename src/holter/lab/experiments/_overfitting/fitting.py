"""Fitting: training on the same few samples again and again, each time from the same start."""

import math
import time

import numpy as np
from torch import Tensor

from holter.diagnosis.facts.fits import Aim, measure
from holter.lab.batches import as_real, cloned
from holter.lab.changes.learning_rate import Rates
from holter.lab.changes.optimizer import parameters_of
from holter.lab.experiments._overfitting.planning import PlannedTrial
from holter.lab.setup import Batch, Setup
from holter.lab.state import State
from holter.lab.writing import Lab

_CLOSE = 0.98  # share of the way at which a trial ends
_CLOSE_ENOUGH = 0.92  # the same for one that takes longer than `_BRISK`
_BRISK = 1.0  # seconds
_LONGER = 3  # times the steps, for a loss that still falls
_HOPE = 10  # times the steps: what needs more at its pace is given up
_LOOK = 50  # steps between looks whether it does
_WARM = 20  # steps in which a schedule's peak is reached


class Fitting:
    """One trial after the other, each from the state that was kept."""

    def __init__(self, setup: Setup, lab: Lab, state: State, steps: int) -> None:
        self.setup, self.lab, self.state = setup, lab, state
        self._steps = steps
        self._weights: list[Tensor] = [*parameters_of(setup)]
        self._before = [weight.detach().clone() for weight in self._weights]
        self._with_gradient: set[int] = set()
        self.rate = 0.0  # of the last trial

    def losses(
        self, trial: PlannedTrial, batch: Batch, aim: Aim, *, until: float, patient: bool = False
    ) -> list[float]:
        """Train from the start with one change; the model is left as it is at the end.

        A trial that is not `patient` ends early if the loss does not fall.
        """
        self.state.restore()
        self._with_gradient.clear()
        losses: list[float] = []
        began = time.perf_counter()
        with trial.change.applied(self.setup) as changed:
            rates = Rates(changed)
            warming_up = rates.warming_up
            rates.set_share(1.0)
            self.rate = trial.factor * rates.peaks[0]
            for number in self.lab.progress(range(_LONGER * self._steps), trial.name):
                if warming_up:
                    rates.set_share(min((number + 1) / _WARM, 1.0))
                copies = [cloned(batch) for _ in range(changed.accumulation)]
                losses.append(changed.step(*copies))
                if number == 0:
                    self._see_gradients()
                if self._is_over(losses, aim, began, until, patient=patient):
                    break
        self.lab.clear()
        self._see_gradients()
        return losses

    @property
    def reached(self) -> int:
        """Values in parameters that got a gradient other than 0 in the last trial."""
        return sum(weight.numel() for weight in self._weights if id(weight) in self._with_gradient)

    @property
    def moved(self) -> int:
        """Values in parameters that the last trial has left other than they were."""
        pairs = zip(self._weights, self._before, strict=True)
        return sum(now.numel() for now, was in pairs if bool((now.detach() != was).any()))

    def _see_gradients(self) -> None:
        self._with_gradient |= {
            id(weight)
            for weight in self._weights
            if weight.requires_grad and weight.grad is not None and bool(as_real(weight.grad).any())
        }

    def _is_over(
        self, losses: list[float], aim: Aim, began: float, until: float, *, patient: bool
    ) -> bool:
        done = len(losses)
        if not math.isfinite(losses[-1]) or time.perf_counter() > until:
            return True
        close = _CLOSE if time.perf_counter() - began < _BRISK else _CLOSE_ENOUGH
        if aim.share(_level(losses, aim)) >= close:
            return True
        if done % _LOOK or done < (self._steps if patient else 2 * _LOOK):
            return False
        fit = measure(np.asarray(losses), aim)
        return not fit.falls or (not patient and fit.ahead > _HOPE * self._steps)


def _level(losses: list[float], aim: Aim) -> float:
    """Return the median of the last losses, or infinity while there are too few."""
    recent = losses[-aim.window :]
    return float(np.median(recent)) if len(recent) == aim.window else np.inf
