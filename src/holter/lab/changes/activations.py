"""Activations: the one that ends a model left out."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from holter.lab.changes import Altered, TappedChange
from holter.lab.changes._hooks import Arguments, around_models
from holter.record.trials import TrialKind, TrialName
from holter.watching.taps import Tap

_NAMES = ("relu", "sigmoid", "tanh", "softmax", "log_softmax")


@contextmanager
def _ends_linearly(altered: Altered) -> Iterator[None]:
    """Let models return what their last activation was given, if they return its result."""
    last: list[tuple[Tensor, Tensor]] = []  # result and input of the last activation
    depth = 0  # one function may call another: the outer one is the model's

    def around(original: Callable[..., Any]) -> Callable[..., Any]:
        def activated(given: Tensor, *args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            depth += 1
            try:
                made = original(given, *args, **kwargs)
            finally:
                depth -= 1
            if depth == 0:
                last[:] = [(made, given)] if made is not given else []
            return made

        return activated

    def call(model: nn.Module, original: Callable[..., Any], arguments: Arguments) -> Any:
        args, kwargs = arguments
        last.clear()
        made = original(model, *args, **kwargs)
        if not last or not isinstance(made, Tensor):
            return made
        ((result, given),) = last
        last.clear()
        if made is not result and not (made._base is result and made.numel() == given.numel()):  # noqa: SLF001
            return made
        altered()
        return given.reshape(made.shape)

    taps = [
        Tap(owner, name, around)
        for owner in (functional, torch, Tensor)
        for name in _NAMES
        if hasattr(owner, name)
    ]
    try:
        with around_models(call=call):
            yield
    finally:
        for tap in reversed(taps):
            tap.remove()


LAST_ACTIVATION_OFF = TappedChange(
    TrialName(TrialKind.LAST_ACTIVATION_OFF),
    "Leave out the activation whose result the model returns.",
    _ends_linearly,
)
