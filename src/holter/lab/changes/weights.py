"""Weights: initialised again as their layers do it by default, or kept as steps leave them."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol, runtime_checkable
from weakref import WeakSet

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from holter.lab.changes import Altered, Change, TappedChange
from holter.lab.changes._hooks import around_models, around_steps, is_training
from holter.lab.setup import Setup
from holter.record.trials import TrialKind, TrialName
from holter.watching.blackbox.shadow import held_by


@runtime_checkable
class _Resettable(Protocol):
    """A layer that can initialise its weights."""

    def reset_parameters(self) -> None: ...


@contextmanager
def _reinitialised(setup: Setup) -> Iterator[Setup]:
    kept = [own for model in setup.models.values() for own in _reset(model)]
    try:
        yield setup
    finally:
        _put_back(kept)


def _reset(model: nn.Module) -> list[tuple[Tensor, Tensor]]:
    """Initialise the layers of a model; return its tensors and their values before."""
    tensors = (*model.parameters(), *model.buffers())
    before = [(tensor, tensor.detach().clone()) for tensor in tensors]
    for module in model.modules():
        if isinstance(module, _Resettable):
            module.reset_parameters()
    return before


def _put_back(kept: Iterable[tuple[Tensor, Tensor]]) -> None:
    with torch.no_grad():
        for tensor, own in kept:
            tensor.copy_(own)


@contextmanager
def _reset_when_first_called(altered: Altered) -> Iterator[None]:
    models: WeakSet[nn.Module] = WeakSet()
    kept: list[tuple[Tensor, Tensor]] = []

    def meet(model: nn.Module) -> AbstractContextManager[None]:
        if model not in models:
            models.add(model)
            altered()
            kept.extend(_reset(model))
        return nullcontext()

    try:
        with around_models(meet):
            yield
    finally:
        _put_back(kept)


DEFAULT_INITIALISATION = TappedChange(
    TrialName(TrialKind.REINITIALISED),
    "Initialise all layers as they do it by default before the first forward pass.",
    _reset_when_first_called,
)
REINITIALISED = Change(
    TrialName(TrialKind.REINITIALISED),
    "Initialise all layers again as they do it by default.",
    _reinitialised,
)


@contextmanager
def _as_steps_left_them(altered: Altered) -> Iterator[None]:
    left: dict[int, tuple[Tensor, Tensor]] = {}  # by identity, which the tensor itself keeps

    def after(optimizer: Optimizer) -> None:
        left.update({id(own): (own, own.detach().clone()) for own in held_by(optimizer)})

    def meet(model: nn.Module) -> AbstractContextManager[None]:
        if is_training():
            known = (left[id(own)] for own in model.parameters() if id(own) in left)
            edited = [(own, before) for own, before in known if not torch.equal(own, before)]
            if edited:
                altered()
                _put_back(edited)
        return nullcontext()

    with around_steps(after=after), around_models(meet):
        yield


EDITS_LEFT_OUT = TappedChange(
    TrialName(TrialKind.EDITS_LEFT_OUT),
    "Train each step on the weights that the last one left, whatever the script wrote to them.",
    _as_steps_left_them,
)
