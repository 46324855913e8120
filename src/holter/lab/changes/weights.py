"""Weights: initialised again as their layers do it by default."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

import torch

from holter.lab.changes import Change
from holter.lab.setup import Setup
from holter.record.trials import TrialKind, TrialName


@runtime_checkable
class _Resettable(Protocol):
    """A layer that can initialise its weights."""

    def reset_parameters(self) -> None: ...


@contextmanager
def _reinitialised(setup: Setup) -> Iterator[Setup]:
    tensors = [
        tensor
        for model in setup.models.values()
        for tensor in (*model.parameters(), *model.buffers())
    ]
    before = [tensor.detach().clone() for tensor in tensors]
    for model in setup.models.values():
        for module in model.modules():
            if isinstance(module, _Resettable):
                module.reset_parameters()
    try:
        yield setup
    finally:
        with torch.no_grad():
            for tensor, own in zip(tensors, before, strict=True):
                tensor.copy_(own)


REINITIALISED = Change(
    TrialName(TrialKind.REINITIALISED),
    "Initialise all layers again as they do it by default.",
    _reinitialised,
)
