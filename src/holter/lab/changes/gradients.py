"""Gradients: cleared after each step, divided by the backward passes that they sum up."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from holter.lab.changes import Altered, TappedChange
from holter.lab.changes._hooks import around_steps
from holter.record.trials import TrialKind, TrialName
from holter.watching.blackbox.shadow import held_by
from holter.watching.taps import Tap


@contextmanager
def _before_backward(function: Callable[[], None]) -> Iterator[None]:
    def around(original: Callable[..., Any]) -> Callable[..., Any]:
        def backward(*args: Any, **kwargs: Any) -> Any:
            function()
            return original(*args, **kwargs)

        return backward

    tap = Tap(torch.autograd, "backward", around)
    try:
        yield
    finally:
        tap.remove()


@contextmanager
def _cleared(altered: Altered) -> Iterator[None]:
    cleared: list[tuple[Tensor, Tensor, int]] = []  # parameter, its gradient, and its version

    def clear(optimizer: Optimizer) -> None:
        for parameter in held_by(optimizer):
            if parameter.grad is not None:
                parameter.grad.detach_().zero_()
                cleared.append((parameter, parameter.grad, parameter.grad._version))  # noqa: SLF001

    def compare() -> None:
        """See whether the script itself has cleared what is cleared already."""
        if any(p.grad is grad and grad._version == version for p, grad, version in cleared):  # noqa: SLF001
            altered()
        cleared.clear()

    with around_steps(after=clear), _before_backward(compare):
        yield


GRADIENTS_CLEARED = TappedChange(
    TrialName(TrialKind.GRADIENTS_CLEARED), "Clear the gradients after each step.", _cleared
)


@contextmanager
def _divided(altered: Altered) -> Iterator[None]:
    passes = 0

    def count() -> None:
        nonlocal passes
        passes += 1

    def divide(optimizer: Optimizer) -> None:
        if passes > 1:
            altered()
            for parameter in held_by(optimizer):
                if parameter.grad is not None:
                    parameter.grad.detach_().div_(passes)

    def begin(_: Optimizer) -> None:
        nonlocal passes
        passes = 0

    with around_steps(before=divide, after=begin), _before_backward(count):
        yield


ACCUMULATION_DIVIDED = TappedChange(
    TrialName(TrialKind.ACCUMULATION_DIVIDED),
    "Divide the gradients by the number of backward passes since the last step.",
    _divided,
)
