"""Keepsake: a model, one of its calls and the loaders of a script, kept until it has ended."""

import copy
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import nn
from torch.utils.data import DataLoader

from holter.lab.batches import cloned, tensors
from holter.record.signals import Signal
from holter.watching.collectors import Reading
from holter.watching.collectors.calls import Calls, is_compiled
from holter.watching.collectors.inputs import roots
from holter.watching.collectors.moments import (
    AfterUpdate,
    BackwardBegins,
    Closing,
    Depth,
    Joined,
    LossComputed,
)
from holter.watching.collectors.roster import Roster

if TYPE_CHECKING:
    from holter.watching.frames import Chain

_KEPT = 2**28  # bytes of a model that is kept after the script has dropped it
_CALL = 2**26  # bytes of the arguments of one call, and of what it returns
_TRIES = 6  # steps in which a call of a whole model is looked for
_LOADERS = 4  # that are kept

_Arguments = tuple[tuple[Any, ...], dict[str, Any]]
_Moment = Joined | AfterUpdate | LossComputed | BackwardBegins | Closing


@dataclass(frozen=True, slots=True)
class TrainingCall:
    """A call of a model in training, and of the loss function after it.

    `repeats` if a later step gives the model the same again, as all nodes of a graph; None if there
    was no later one.
    """

    arguments: _Arguments
    output: Any
    loss: tuple[str, dict[str, Any]] | None
    repeats: bool | None = None


class Keepsake:
    """Keeps a model, one of its calls in training and the loaders until the script has ended.

    A model of moderate size is kept even if the script drops it, others only as long as it lives.
    It listens to the first steps alone.
    """

    emits: ClassVar[tuple[Signal, ...]] = ()
    at: ClassVar[tuple[type, ...]] = (Joined, AfterUpdate, LossComputed, BackwardBegins, Closing)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self.declined: list[str] = []
        self.call: TrainingCall | None = None
        self._model: nn.Module | weakref.ref[nn.Module] | None = None
        self._calls: Calls[str] = Calls(self._heard, self._returned)
        self._tries = _TRIES
        self._found: tuple[nn.Module, _Arguments, Any] | None = None
        self._loss: tuple[str, dict[str, Any]] | None = None
        self._loaders: dict[tuple[Chain, bool], DataLoader[Any]] = {}

    @property
    def spent(self) -> float:
        """Seconds inside the hooks, which no moment sees."""
        return self._calls.spent

    @property
    def model(self) -> nn.Module | None:
        """The model that was called, if it is still there."""
        return self._model() if isinstance(self._model, weakref.ref) else self._model

    def loader_begins(self, loader: DataLoader[Any], chain: "Chain", aside: bool) -> None:
        """Keep a copy in the place of the loader that was used there before.

        Not the loader itself: the recording tells from its end that another takes its place.
        """
        self._loaders.pop((chain, aside), None)
        try:
            twin = copy.copy(loader)
            twin.__dict__["_iterator"] = None  # and its workers
        except Exception:  # a library's own kind: its data are not examined
            return
        self._loaders[chain, aside] = twin
        if len(self._loaders) > _LOADERS:
            del self._loaders[next(iter(self._loaders))]

    def loaders(self, training: "Chain | None", others: Iterable["Chain"]) -> dict[str, Any]:
        """The loaders of training and of validation, as far as they are known."""
        found = {} if training is None else {"train": self._loaders.get((training, False))}
        aside = (self._loaders.get((chain, True)) for chain in others)
        found["valid"] = next((each for each in aside if each is not None), None)
        return {name: loader for name, loader in found.items() if loader is not None}

    def read(self, moment: _Moment) -> Iterable[Reading]:
        """Listen to the calls of a step until one of a whole model was heard."""
        if not self._tries:
            return ()
        if isinstance(moment, LossComputed):
            self._loss = self._loss or (moment.function, dict(moment.arguments))
        elif isinstance(moment, BackwardBegins):
            if moment.opens_step and self._calls.listens:
                self._keep()
        else:
            self._forget()
            if isinstance(moment, Closing):
                return ()
            depth = moment.depth if isinstance(moment, Joined) else moment.next_depth
            if depth >= self.depth:
                self._listen(moment.roster)
        return ()

    def _listen(self, roster: Roster) -> None:
        if not any(is_compiled(model.module) for model in roster.models):
            self._calls.know(roots(roster))
            self._calls.listen()

    def _forget(self) -> None:
        self._calls.stop()
        self._found = self._loss = None

    def _heard(self, _: str, module: nn.Module, __: Any) -> bool:
        return not torch.is_grad_enabled() or not module.training or self._found is not None

    def _returned(self, _: str, module: nn.Module, arguments: _Arguments, output: Any) -> None:
        if self._found is None and _bytes((arguments, output)) <= _CALL:
            self._found = module, cloned(arguments), cloned(output)

    def _keep(self) -> None:
        found, loss = self._found, self._loss
        self._forget()
        self._tries -= 1
        if found is None:
            return
        model, arguments, output = found
        if self.call is not None:
            self.call = replace(self.call, repeats=_are_equal(arguments, self.call.arguments))
            self._tries = 0
            return
        small = _bytes(list(model.parameters())) <= _KEPT
        self._model = model if small else weakref.ref(model)
        kept = loss if loss is not None and _bytes(loss[1]) <= _CALL else None
        self.call = TrainingCall(arguments, output, kept and (kept[0], cloned(kept[1])))


def _are_equal(one: _Arguments, other: _Arguments) -> bool:
    pairs = zip(tensors(one), tensors(other), strict=False)
    return all(a.shape == b.shape and torch.equal(a, b) for a, b in pairs)


def _bytes(value: Any) -> int:
    return sum(each.numel() * each.element_size() for each in tensors(value))
