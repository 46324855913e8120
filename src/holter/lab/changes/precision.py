"""Precision: half-precision weights, optimizer states and inputs in float32, autocast off."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from holter.lab.changes import Altered, Change, TappedChange, nothing
from holter.lab.changes._hooks import Arguments, around_models
from holter.lab.setup import Setup
from holter.record.trials import TrialKind, TrialName
from holter.watching.taps import Tap

HALF = (torch.float16, torch.bfloat16)


@contextmanager
def _in_float32(setup: Setup) -> Iterator[Setup]:
    narrow = [
        tensor
        for model in setup.models.values()
        for tensor in (*model.parameters(), *model.buffers())
        if tensor.dtype in HALF
    ]
    dtypes = [tensor.dtype for tensor in narrow]
    for tensor in narrow:
        tensor.grad = None
        tensor.data = tensor.data.float()
    states = [state for optimizer in setup.optimizers for state in optimizer.state.values()]
    kept = [{k: v for k, v in state.items() if _is_half(v)} for state in states]
    for state, halves in zip(states, kept, strict=True):
        state.update({name: value.float() for name, value in halves.items()})
    hooks = [
        model.register_forward_pre_hook(
            lambda _, args, kwargs: pytree.tree_map(_wide, (args, kwargs)), with_kwargs=True
        )
        for model in setup.models.values()
        if narrow
    ]
    try:
        with _without_autocast(nothing):
            yield setup
    finally:
        for hook in hooks:
            hook.remove()
        for tensor, dtype in zip(narrow, dtypes, strict=True):
            tensor.grad = None
            tensor.data = tensor.data.to(dtype)
        for state, halves in zip(states, kept, strict=True):
            state.update({name: state[name].to(half.dtype) for name, half in halves.items()})


@contextmanager
def _widened(altered: Altered) -> Iterator[None]:
    """Disable autocast, and widen models and what they are given when they are called."""

    def given(model: nn.Module, arguments: Arguments) -> Arguments:
        narrow = [t for t in (*model.parameters(), *model.buffers()) if t.dtype in HALF]
        for tensor in narrow:
            altered()
            tensor.data = tensor.data.float()
        args, kwargs = pytree.tree_map(_wide, arguments)
        return args, kwargs

    with _without_autocast(altered), around_models(given=given):
        yield


AUTOCAST_OFF = TappedChange(
    TrialName(TrialKind.AUTOCAST_OFF),
    "Keep weights in float32 and compute without autocast.",
    _widened,
)
FLOAT32 = Change(TrialName(TrialKind.FLOAT32), "Compute in float32, without autocast.", _in_float32)


@contextmanager
def _without_autocast(altered: Altered) -> Iterator[None]:
    """Disable autocast wherever the step enters it."""

    def disabled(original: Callable[..., Any]) -> Callable[..., Any]:
        def made(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            if self._enabled:
                altered()
            self._enabled = False

        return made

    tap = Tap(torch.amp.autocast_mode.autocast, "__init__", disabled)
    try:
        with ExitStack() as stack:
            for device in ("cpu", "cuda"):
                stack.enter_context(torch.autocast(device, enabled=False))
            yield
    finally:
        tap.remove()


def _is_half(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype in HALF


def _wide(value: Any) -> Any:
    return value.float() if _is_half(value) else value
