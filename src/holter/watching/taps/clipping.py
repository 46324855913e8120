"""Taps on gradient clipping, by norm and by value."""

from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor, nn
from torch.nn.utils import clip_grad

from holter.watching.tap import Call, Tap


class ClippingListener(Protocol):
    """Hears of gradient clipping."""

    def clip_begins(self, parameters: Sequence[Tensor]) -> None:
        """Gradients of `parameters` are about to be clipped."""

    def clip_ends(self, norm: Tensor | None, limit: float) -> None:
        """Gradients were clipped; `norm` is None for clipping by value."""


def tap_clipping(listener: ClippingListener) -> list[Tap]:
    """Tap the functions that clip gradients."""

    def with_norm(original: Call) -> Call:
        def clip(
            parameters: Any, max_norm: float, total_norm: Tensor, *args: Any, **kw: Any
        ) -> Any:
            parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
            listener.clip_begins(parameters)
            original(parameters, max_norm, total_norm, *args, **kw)
            listener.clip_ends(total_norm, float(max_norm))

        return clip

    def by_value(original: Call) -> Call:
        def clip(parameters: Any, clip_value: float, *args: Any, **kwargs: Any) -> Any:
            parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
            listener.clip_begins(parameters)
            original(parameters, clip_value, *args, **kwargs)
            listener.clip_ends(None, float(clip_value))

        return clip

    # `clip_grad_norm_` looks this helper up when it is called: wherever a script has imported it
    # from, and however early, it is heard.
    return [
        Tap(clip_grad, "_clip_grads_with_norm_", with_norm),
        Tap(nn.utils, "clip_grads_with_norm_", with_norm),
        Tap(nn.utils, "clip_grad_value_", by_value),
    ]
