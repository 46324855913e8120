"""Taps on autograd: the calls of `backward()`."""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

from holter.watching.tap import Call, Tap


class BackwardListener(Protocol):
    """Hears of backward passes."""

    @property
    def is_deaf(self) -> bool:
        """Whether a backward is of no interest now: not telling of it saves most of the cost."""

    @property
    def minds_backward_ends(self) -> bool:
        """Whether to tell when backward has returned."""

    def backward_begins(self, roots: Sequence[Tensor], *, whole: bool) -> None:
        """`backward()` was called on `roots`; not `whole` if for some gradients only."""

    def backward_ends(self) -> None:
        """`backward()` has returned."""


def tap_autograd(listener: BackwardListener) -> list[Tap]:
    """Tap `torch.autograd.backward`."""

    def around(original: Call) -> Call:
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if listener.is_deaf:
                return original(tensors, *args, **kwargs)
            if isinstance(tensors, Tensor):
                values: Sequence[Tensor] = (tensors,)
            else:
                single = isinstance(tensors, GradientEdge)
                tensors = tensors if single else tuple(tensors)  # which may be a generator
                values = () if single else [root for root in tensors if isinstance(root, Tensor)]
            for root in values:
                if root.is_meta:  # a library infers shapes: no training
                    return original(tensors, *args, **kwargs)
            listener.backward_begins(values, whole=not kwargs.get("inputs"))
            result = original(tensors, *args, **kwargs)
            if listener.minds_backward_ends:
                listener.backward_ends()
            return result

        return backward

    return [Tap(torch.autograd, "backward", around, guarded=False)]
