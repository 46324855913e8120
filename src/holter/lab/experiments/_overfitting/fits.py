"""Fits: training on the same few samples again and again, each time from the same start."""

import math
import time
from contextlib import nullcontext

import numpy as np
from torch import Tensor

from holter.diagnosis.facts.fits import Aim, level, measure
from holter.lab.batches import cloned
from holter.lab.experiments._overfitting.branches import Branch
from holter.lab.experiments._overfitting.changes import groups, peaks, set_rate
from holter.lab.setup import Batch, Setup
from holter.lab.state import State, same_randomness
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
        self._before = [each.detach().clone() for each in self._parameters]
        self._with_gradient: set[int] = set()
        self.rate = 0.0  # of the last trial

    def losses(
        self, branch: Branch, batch: Batch, aim: Aim, *, until: float, patient: bool = False
    ) -> list[float]:
        """Train from the start with one thing changed; the model is left as it is at the end.

        One that is not `patient` gives up early where the loss does not fall.
        """
        self.state.restore()
        self._with_gradient.clear()
        setup = branch.setup
        highest = peaks(setup)
        warming = any(float(g["lr"]) < top for g, top in zip(groups(setup), highest, strict=True))
        for group, top in zip(groups(setup), highest, strict=True):
            set_rate(group, top)
        losses: list[float] = []
        began = time.perf_counter()
        with branch.during():
            rates = [float(group["lr"]) for group in groups(setup)]
            self.rate = rates[0]
            for number in self.lab.progress(range(_LONGER * self._steps), branch.name):
                if warming and number < _WARM:
                    for group, rate in zip(groups(setup), rates, strict=True):
                        set_rate(group, rate * (number + 1) / _WARM)
                copies = [cloned(batch) for _ in range(setup.accumulation)]
                with same_randomness(setup) if branch.same_numbers else nullcontext():
                    losses.append(setup.step(*copies))
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
        return sum(each.numel() for each in self._parameters if id(each) in self._with_gradient)

    @property
    def moved(self) -> int:
        """Values in parameters that the last trial has left other than they were."""
        pairs = zip(self._parameters, self._before, strict=True)
        return sum(now.numel() for now, was in pairs if bool((now.detach() != was).any()))

    @property
    def _parameters(self) -> list[Tensor]:
        return [each for model in self.setup.models.values() for each in model.parameters()]

    def _see_gradients(self) -> None:
        self._with_gradient |= {
            id(each)
            for each in self._parameters
            if each.requires_grad and each.grad is not None and bool((each.grad != 0).any())
        }

    def _is_over(
        self, losses: list[float], aim: Aim, began: float, until: float, *, patient: bool
    ) -> bool:
        done = len(losses)
        if not math.isfinite(losses[-1]) or time.perf_counter() > until:
            return True
        close = _CLOSE if time.perf_counter() - began < _BRISK else _CLOSE_ENOUGH
        if aim.share(level(losses, aim)) >= close:
            return True
        if done % _LOOK or done < (self._steps if patient else 2 * _LOOK):
            return False
        fit = measure(np.asarray(losses), aim)
        return not fit.falls or (not patient and fit.ahead > _HOPE * self._steps)
