"""Taps on models: their modes, and functions that they call in a forward pass."""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from holter.watching.tap import Call, Interest, Tap

_FUNCTION, _MODULE = functional.relu.__code__, nn.ReLU.forward.__code__


class ModuleListener(Protocol):
    """Hears of what models do."""

    @property
    def forward(self) -> Interest:
        """Whether to tell which functions are called in a forward pass."""

    def nonfinite_replaced(self, tensor: Tensor) -> None:
        """Non-finite values of a tensor are about to be replaced."""

    def rectified(self, output: Tensor) -> None:
        """A ReLU was called as a function, not by `nn.ReLU`."""

    def attended(
        self,
        query: Tensor,
        key: Tensor,
        mask: Tensor | None,
        *,
        is_causal: bool,
        scale: float | None,
    ) -> None:
        """Attention was computed."""

    def modes_changed(self, modules: Sequence[nn.Module]) -> None:
        """`train()` or `eval()` was called on a module, and by that on its children."""


def tap_modules(listener: ModuleListener) -> list[Tap]:
    """Tap `train()`, attention, ReLU and `nan_to_num`."""
    attention = Tap(
        functional,
        "scaled_dot_product_attention",
        partial(_attention, listener),
        interest=listener.forward,
    )
    mode = Tap(nn.Module, "train", partial(_train, listener))
    return [*_replacing(listener), *_rectifying(listener), attention, mode]


def _replacing(listener: ModuleListener) -> list[Tap]:
    def around(original: Call) -> Call:
        def replaced(*args: Any, **kwargs: Any) -> Any:
            if torch.is_grad_enabled():
                given = args[0] if args else kwargs.get("input")
                if isinstance(given, Tensor):
                    listener.nonfinite_replaced(given)
            return original(*args, **kwargs)

        return replaced

    return [
        Tap(target, name, around, interest=listener.forward)
        for target in (torch, Tensor)
        for name in ("nan_to_num", "nan_to_num_")
    ]


def _rectifying(listener: ModuleListener) -> list[Tap]:
    def around(original: Call) -> Call:
        def rectified(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if isinstance(result, Tensor) and torch.is_grad_enabled():
                caller = sys._getframe(2)  # noqa: SLF001  (past the guard of the tap)
                if caller.f_code is _FUNCTION and caller.f_back is not None:
                    caller = caller.f_back
                if caller.f_code is not _MODULE:  # which is read when it returns
                    listener.rectified(result)
            return result

        return rectified

    # `F.relu` and `nn.ReLU` look these up when they are called.
    return [
        Tap(target, name, around, interest=listener.forward)
        for target in (torch, Tensor)
        for name in ("relu", "relu_")
    ]


def _attention(listener: ModuleListener, original: Call) -> Call:
    def attend(
        query: Any, key: Any, value: Any, attn_mask: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        result = original(query, key, value, attn_mask, *args, **kwargs)
        if torch.is_grad_enabled():
            causal = args[1] if len(args) > 1 else kwargs.get("is_causal", False)
            scale = kwargs.get("scale")
            listener.attended(query, key, attn_mask, is_causal=bool(causal), scale=scale)
        return result

    return attend


def _train(listener: ModuleListener, original: Call) -> Call:
    changing: list[nn.Module] = []  # by the call under way

    def train(self: nn.Module, mode: bool = True) -> Any:
        nonlocal changing
        changing.append(self)
        if len(changing) > 1:  # a module puts its children into its mode by the same method
            return original(self, mode)
        try:
            return original(self, mode)
        finally:
            modules, changing = changing, []
            listener.modes_changed(modules)

    return train
