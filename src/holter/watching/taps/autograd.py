"""Taps on autograd: the calls of `backward()`, and of `grad()` where a script trains by it."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

from holter.watching.tap import Call, Tap


class BackwardListener(Protocol):
    """Hears of backward passes."""

    def backward_begins(self, roots: Sequence[Tensor], whole: bool) -> None:
        """`backward()` was called on `roots`; not `whole` if for some gradients only."""

    def backward_ends(self) -> None:
        """`backward()` has returned."""


class OuterListener(BackwardListener, Protocol):
    """Hears of backward passes around another."""

    is_deaf: bool  # a backward is of no interest now


def tap_autograd(
    outer: OuterListener, inner: BackwardListener, *, minds_grad: Callable[[], bool]
) -> list[Tap]:
    """Tap `torch.autograd.backward`, and `torch.autograd.grad` while `minds_grad` says so."""

    def around(original: Call) -> Call:
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(tensors, Tensor):
                values: Sequence[Tensor] = (tensors,)
            else:
                single = isinstance(tensors, GradientEdge)
                tensors = tensors if single else tuple(tensors)  # which may be a generator
                values = () if single else [root for root in tensors if isinstance(root, Tensor)]
            for root in values:
                if root.is_meta:  # a library infers shapes: no training
                    return original(tensors, *args, **kwargs)
            whole = not kwargs.get("inputs")
            if outer.is_deaf:
                inner.backward_begins(values, whole)
                result = original(tensors, *args, **kwargs)
                inner.backward_ends()
                return result
            outer.backward_begins(values, whole)
            inner.backward_begins(values, whole)
            result = original(tensors, *args, **kwargs)
            inner.backward_ends()
            if not outer.is_deaf:
                outer.backward_ends()
            return result

        return backward

    return tap_backward(around, minds_grad=minds_grad)


def tap_backward(around: Callable[[Call], Call], *, minds_grad: Callable[[], bool]) -> list[Tap]:
    """Tap `torch.autograd.backward`; in a script that never calls it, `torch.autograd.grad` too.

    Inside of `around` leaves have the gradients that `grad` returns; afterwards those they had.
    """
    calls_backward = False

    def around_backward(original: Call) -> Call:
        heard = around(original)

        def backward(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls_backward
            calls_backward = True
            return heard(*args, **kwargs)

        return backward

    def around_grad(original: Call) -> Call:
        def grad(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            loss = _loss(outputs)
            leaves = (inputs,) if isinstance(inputs, Tensor) else inputs
            if calls_backward or loss is None or not _trains(leaves, args, kwargs):
                return original(outputs, inputs, *args, **kwargs)
            if not minds_grad():
                return original(outputs, inputs, *args, **kwargs)
            own, found = [leaf.grad for leaf in leaves], []

            def run(_: Tensor) -> None:
                found.append(original(outputs, inputs, *args, **kwargs))
                _give(leaves, found[0])

            try:
                around(run)(loss)
            finally:
                _give(leaves, own)
            return found[0]

        return grad

    return [
        Tap(torch.autograd, "backward", around_backward, guarded=False),
        Tap(torch.autograd, "grad", around_grad, guarded=False),
    ]


class DerivativeListener(Protocol):
    """Hears of derivatives that a script asks for."""

    @property
    def is_deaf(self) -> bool:
        """Whether a derivative is of no interest now."""

    def derivative_asked(self) -> None:
        """`torch.autograd.grad` is called."""


def tap_derivatives(listener: DerivativeListener) -> list[Tap]:
    """Tap `torch.autograd.grad`, whatever it is called for."""

    def around(original: Call) -> Call:
        def grad(*args: Any, **kwargs: Any) -> Any:
            if not listener.is_deaf:
                listener.derivative_asked()
            return original(*args, **kwargs)

        return grad

    return [Tap(torch.autograd, "grad", around, guarded=False)]


def _loss(outputs: Any) -> Tensor | None:
    """Return the one number that is differentiated, or None."""
    if not isinstance(outputs, Tensor):
        if not isinstance(outputs, Sequence) or len(outputs) != 1:
            return None
        (outputs,) = outputs
    is_number = isinstance(outputs, Tensor) and outputs.numel() == 1 and not outputs.is_meta
    return outputs if is_number else None


def _trains(leaves: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether gradients of leaves are asked for, not a part of a larger graph."""
    if not isinstance(leaves, list | tuple) or not leaves or args:
        return False
    asks = ("grad_outputs", "create_graph", "is_grads_batched")
    return not any(kwargs.get(each) for each in asks) and all(
        isinstance(leaf, Tensor) and leaf.is_leaf and leaf.requires_grad for leaf in leaves
    )


def _give(leaves: Sequence[Tensor], gradients: Sequence[Tensor | None]) -> None:
    for leaf, gradient in zip(leaves, gradients, strict=True):
        leaf.grad = gradient
