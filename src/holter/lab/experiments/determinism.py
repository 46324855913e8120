"""Repeat a training step from the same state, and compare the results bit for bit."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from holter.lab.batches import cloned
from holter.lab.birth.owners import owned
from holter.lab.determinism import deterministic_algorithms
from holter.lab.experiments import experiment
from holter.lab.experiments._repeating.comparing import Difference, between, total
from holter.lab.experiments._repeating.operations import first_difference
from holter.lab.setup import Batch, Setup
from holter.lab.state import State
from holter.lab.writing import Lab
from holter.record.events import NotDeterministic
from holter.record.signals import DETERMINISM_ELEMENTS, DETERMINISM_SECONDS, DETERMINISM_ULPS
from holter.record.trials import TrialKind

_WARM_UP = 2  # steps that are not timed
_LONGEST = 300  # characters of torch's sentence
_Mode = Callable[[], AbstractContextManager[None]]
AS_IT_IS, DETERMINISTIC = str(TrialKind.UNCHANGED), str(TrialKind.DETERMINISTIC)


@experiment(emits=(DETERMINISM_ELEMENTS, DETERMINISM_ULPS, DETERMINISM_SECONDS))
def determinism(setup: Setup, lab: Lab, *, repeats: int = 8, steps: int = 10) -> None:
    """Does the same step give the same result twice, and what does determinism cost?

    Repeats one step from the same weights, batch and random numbers, and compares loss, gradients
    and weights bit for bit. If they differ, it hashes the output of every operation and names the
    first one that differs, with its source line. Then it repeats and times the step with
    deterministic algorithms only.

    `repeats`: repetitions of the step. `steps`: steps that are timed in each mode.
    """
    pass_ = _Pass(setup)
    if _compare(pass_, lab, AS_IT_IS, repeats):
        operation = first_difference(pass_.run, setup.models, repeats=repeats)
        if operation is not None:
            lab.event(operation)
    mode: _Mode = deterministic_algorithms
    try:
        with mode():
            pass_.run()
    except RuntimeError as error:
        if "deterministic" not in str(error):
            raise
        lab.event(NotDeterministic(str(error).strip().partition("\n")[0][:_LONGEST]))
        mode = _warned
    with mode():
        _compare(pass_, lab, DETERMINISTIC, repeats)
    _time(pass_, lab, {AS_IT_IS: nullcontext, DETERMINISTIC: mode}, steps)


@dataclass(frozen=True, slots=True)
class _Result:
    """What a step leaves behind, by name."""

    loss: dict[str, Tensor]
    gradients: dict[str, Tensor]
    weights: dict[str, Tensor]  # with buffers and the optimizer's state


class _Pass:
    """One training step that always begins in the same state."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        batches = setup.endless()
        self._batches: list[Batch] = [next(batches) for _ in range(setup.accumulation)]
        self._state = State(setup)

    def run(self) -> _Result:
        """Restore the state, make the step, and return what it leaves behind."""
        self._state.restore()
        losses = self._setup.losses_of_step(*(cloned(batch) for batch in self._batches))
        self.wait()
        held = list(owned(self._setup.models, self._setup.optimizers))
        return _Result(
            {str(n): torch.tensor(loss, dtype=torch.float64) for n, loss in enumerate(losses)},
            {
                owner.name: tensor.grad.detach().clone()
                for owner, tensor in held
                if owner.role == "parameter" and tensor.grad is not None
            },
            {f"{owner.role} {owner.name}": tensor.detach().clone() for owner, tensor in held},
        )

    def timed(self) -> float:
        """Make the step from wherever the training is, and return the seconds it took."""
        batches = [cloned(batch) for batch in self._batches]
        self.wait()
        began = time.perf_counter()
        self._setup.losses_of_step(*batches)
        self.wait()
        return time.perf_counter() - began

    def restore(self) -> None:
        """Return to the state in which every step begins."""
        self._state.restore()

    def wait(self) -> None:
        """Wait for the device."""
        if self._setup.device.type == "cuda":
            torch.cuda.synchronize(self._setup.device)


def _compare(pass_: _Pass, lab: Lab, trial: str, repeats: int) -> bool:
    """Write how much repetitions differ from the first pass; return whether any does."""
    first = pass_.run()
    found: dict[str, list[Difference]] = {"loss": [], "gradients": [], "weights": []}
    for _ in lab.progress(range(repeats), "repetitions"):
        again = pass_.run()
        for part, differences in found.items():
            pair = getattr(first, part), getattr(again, part)
            differences.append(total(between(*pair).values()))
    for part, differences in found.items():
        name = part if trial == AS_IT_IS else f"{part} · {trial}"
        lab.write(DETERMINISM_ELEMENTS, [each.elements for each in differences], trial=name)
        lab.write(DETERMINISM_ULPS, [each.ulps for each in differences], trial=name)
    return any(map(any, found.values()))


def _time(
    pass_: _Pass,
    lab: Lab,
    modes: dict[str, _Mode],
    steps: int,
) -> None:
    """Write the duration of a step in each mode, taken in turns."""
    taken: dict[str, list[float]] = {trial: [] for trial in modes}
    for mode in modes.values():
        pass_.restore()
        with mode():
            for _ in range(_WARM_UP):
                pass_.timed()
    for _ in lab.progress(range(steps), "timed steps"):
        for trial, mode in modes.items():
            pass_.restore()
            with mode():
                taken[trial].append(pass_.timed())
    for trial, seconds in taken.items():
        lab.write(DETERMINISM_SECONDS, seconds, trial=trial)


def _warned() -> AbstractContextManager[None]:
    return deterministic_algorithms(warn_only=True)
