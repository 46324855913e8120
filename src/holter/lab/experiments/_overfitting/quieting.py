"""Dropout off, whoever applies it: layers, functions, attention, recurrent layers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn
from torch.nn import functional

from holter.lab.setup import Setup
from holter.watching.taps import Tap

_FUNCTIONS = (
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "alpha_dropout",
    "feature_alpha_dropout",
)


@contextmanager
def dropout_off(setup: Setup) -> Iterator[None]:
    """Inside, nothing is dropped. Layers whose name says that they drop are in eval mode."""
    modules = [each for model in setup.models.values() for each in model.modules()]
    layers = [each for each in modules if _drops(each)]
    recurrent = [each for each in modules if isinstance(each, nn.RNNBase | nn.MultiheadAttention)]
    modes = [each.training for each in layers]
    shares = [each.dropout for each in recurrent]
    taps = [Tap(functional, name, _same) for name in _FUNCTIONS]
    taps.append(Tap(functional, "scaled_dot_product_attention", _undropped))
    try:
        for layer in layers:
            layer.training = False
        for each in recurrent:
            each.dropout = 0.0
        yield
    finally:
        for tap in reversed(taps):
            tap.remove()
        for layer, mode in zip(layers, modes, strict=True):
            layer.training = mode
        for each, share in zip(recurrent, shares, strict=True):
            each.dropout = share


def _drops(module: nn.Module) -> bool:
    named = "drop" in type(module).__name__.lower()
    return named and next(module.parameters(), None) is None


def _same(_: Callable[..., Any]) -> Callable[..., Any]:
    def kept(input: Any, *_: Any, **__: Any) -> Any:  # noqa: A002  (as torch calls it)
        return input

    return kept


def _undropped(original: Callable[..., Any]) -> Callable[..., Any]:
    def attention(*args: Any, **kwargs: Any) -> Any:
        if len(args) > 4:
            return original(*args[:4], 0.0, *args[5:], **kwargs)
        return original(*args, **{**kwargs, "dropout_p": 0.0})

    return attention
