"""What the predictions of each evaluation pass amount to: counts by class, scores, residuals."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from holter.record.evaluations import owner_of
from holter.record.events import PassMeasured
from holter.record.format import Floats
from holter.record.signals import VAL_BALANCED_ACCURACY, VAL_CALIBRATION_ERROR, VAL_R2, Signal
from holter.watching.collectors import Reading, Tally
from holter.watching.collectors.loss_calls import Family, Given, given
from holter.watching.collectors.moments import Depth, StepEnds, ValidationLoss
from holter.watching.collectors.tallies import PassTally, tally_of

_SMALL = 1 << 15  # elements of predictions that are kept to be counted together
_MOST_WAITING = 4 * _SMALL  # of all kinds together
_SHARE, _ALLOWANCE = 0.01, 1.0  # of the time since the first pass, and seconds besides
_ALL = 64  # passes of which each is read; of later ones, a geometric series


@dataclass(slots=True)
class _Waiting:
    """Small calls of one kind that are counted together: torch costs the same for few rows."""

    call: Given
    width: int | None
    predictions: list[Tensor]
    targets: list[Tensor]
    elements: int = 0

    def joined(self) -> Given:
        """All of them as one call."""
        return replace(
            self.call, prediction=torch.cat(self.predictions), target=torch.cat(self.targets)
        )


class _Pass:
    """One loss function on some data since the last step ended."""

    def __init__(self) -> None:
        self.from_training = False  # a prediction is an output of a forward call of the training
        self._tallies: dict[Any, PassTally] = {}  # by number of outputs: one for each head
        self._waiting: dict[Any, _Waiting] = {}

    def add(self, call: Given) -> None:
        """Count a call, or keep a copy of a small one until there are more."""
        width = _width(call, call.arguments["target"])
        is_single = call.prediction.dim() < (2 if call.family is Family.CLASSES else 1)
        if is_single or call.prediction.numel() > _SMALL:
            self._count(call, width)
            return
        key = (*_kind(call), call.target.shape[1:], call.target.dtype, width, call.ignored)
        waiting = self._waiting.get(key)
        if waiting is None:
            waiting = self._waiting[key] = _Waiting(call, width, [], [])
        # Copies: scripts change predictions in place once they have the loss.
        waiting.predictions.append(call.prediction.clone())
        waiting.targets.append(call.target.clone())
        waiting.elements += call.prediction.numel()
        if waiting.elements > _SMALL:
            self._count(self._waiting.pop(key).joined(), width)
        elif sum(one.elements for one in self._waiting.values()) > _MOST_WAITING:
            self._count_waiting()  # calls of many shapes, as of sequences of any length

    def _count(self, call: Given, width: int | None) -> None:
        key = _kind(call)
        if key not in self._tallies:
            tally = tally_of(call)
            if tally is None:
                return
            self._tallies[key] = tally
        self._tallies[key].add(call, width)

    def _count_waiting(self) -> None:
        for waiting in self._waiting.values():
            self._count(waiting.joined(), waiting.width)
        self._waiting.clear()

    def end(self) -> list[PassTally]:
        """Count what waits, and return all counts."""
        self._count_waiting()
        return list(self._tallies.values())


class EvaluatedPasses:
    """Counts predictions against targets over the calls of a loss function without a backward.

    Passes are counted whole or not at all, within a share of the time.
    """

    emits: ClassVar[tuple[Signal, ...]] = (VAL_BALANCED_ACCURACY, VAL_CALIBRATION_ERROR, VAL_R2)
    at: ClassVar[tuple[type, ...]] = (ValidationLoss, StepEnds)
    depth: ClassVar[Depth] = Depth.LIGHT
    wakes_at: ClassVar[tuple[type, ...]] = (ValidationLoss,)

    def __init__(self) -> None:
        self._passes: dict[tuple[str, ...], _Pass | None] = {}  # by owner; None: not read
        self._owners: dict[tuple[str, str], tuple[str, ...]] = {}
        self._seen: dict[tuple[str, ...], tuple[int, int]] = {}  # passes so far, and the next
        self._began = 0.0
        self._spent = 0.0

    @torch.no_grad()
    def read(self, moment: ValidationLoss | StepEnds) -> Iterable[Reading | Tally]:
        """The counts of each pass, at the end of the step."""
        began = time.perf_counter()
        self._began = self._began or began
        found: list[Reading | Tally] = []
        if isinstance(moment, ValidationLoss):
            self._add(moment)
        else:
            for owner, passed in self._passes.items():
                if passed is not None:
                    found += _told(owner, passed)
            self._passes.clear()
        self._spent += time.perf_counter() - began
        return found

    def _add(self, moment: ValidationLoss) -> None:
        key = moment.function, moment.data
        owner = self._owners.get(key)
        if owner is None:
            owner = self._owners[key] = (owner_of(*key),)
        if owner not in self._passes:
            self._passes[owner] = _Pass() if self._is_due(owner) else None
        passed = self._passes[owner]
        call = given(moment.function, moment.arguments) if passed is not None else None
        if passed is not None and call is not None:
            passed.from_training |= moment.from_training
            passed.add(call)

    def _is_due(self, owner: tuple[str, ...]) -> bool:
        """Whether to read a pass that begins."""
        passes, due = self._seen.get(owner, (0, 0))
        limit = _ALLOWANCE + _SHARE * (time.perf_counter() - self._began)
        if passes < due or self._spent > limit:
            self._seen[owner] = passes + 1, due
            return False
        self._seen[owner] = passes + 1, passes + 1 + passes // _ALL
        return True


def _told(owner: tuple[str, ...], passed: _Pass) -> Iterable[Reading | Tally]:
    tallies = passed.end()
    for tally in tallies:
        told = partial(_of_training, tally) if passed.from_training else tally.told
        yield Tally(tally.values(), partial(told, owner[0]))
    for signal, value in tallies[0].readings().items() if len(tallies) == 1 else ():
        yield Reading(signal, owner, value.reshape(1))


def _of_training(tally: PassTally, owner: str, values: Floats) -> PassMeasured | None:
    measured = tally.told(owner, values)
    return None if measured is None else replace(measured, from_training=True)


def _kind(call: Given) -> tuple[Any, ...]:
    """Calls of one kind are counted together."""
    shape = call.prediction.shape
    units = shape[call.axis] if call.family is Family.CLASSES else shape[1:]
    return units, call.prediction.dtype, call.prediction.device


def _width(call: Given, target: Tensor) -> int | None:
    """Return the length of sequences if the targets are rows of them, or were before `view(-1)`."""
    if call.family is not Family.CLASSES or call.is_soft:
        return None
    if target.dim() == 2:
        return target.shape[1]
    base = target._base  # noqa: SLF001  (torch has no public way to ask what a view was made of)
    if target.dim() != 1 or base is None or base.dim() != 2 or base.numel() != target.numel():
        return None
    return base.shape[1] if base.shape[1] > 1 and base.is_contiguous() else None
