"""Dropout off, whoever applies it: layers, functions, attention, recurrent layers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn
from torch.nn import functional
from torch.nn.modules.dropout import _DropoutNd

from holter.lab.changes import Change
from holter.lab.setup import Setup
from holter.record.trials import TrialKind, TrialName
from holter.watching.taps import Tap

_FUNCTIONS = (
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "alpha_dropout",
    "feature_alpha_dropout",
)
_DROPOUT_P = 4  # the place of `dropout_p` among the arguments of scaled_dot_product_attention


def drops(module: nn.Module) -> bool:
    """Whether a module of torch drops values in train mode."""
    if isinstance(module, nn.RNNBase | nn.MultiheadAttention):
        return module.dropout > 0
    return isinstance(module, _DropoutNd) and module.p > 0


@contextmanager
def dropout_off(setup: Setup) -> Iterator[Setup]:
    """Drop nothing inside; layers whose class name says that they drop are in eval mode."""
    modules = [module for model in setup.models.values() for module in model.modules()]
    layers = [module for module in modules if _is_named_dropout(module)]
    inside = [each for each in modules if isinstance(each, nn.RNNBase | nn.MultiheadAttention)]
    modes = [layer.training for layer in layers]
    shares = [module.dropout for module in inside]
    taps = [Tap(functional, name, _passing) for name in _FUNCTIONS]
    taps.append(Tap(functional, "scaled_dot_product_attention", _undropped))
    try:
        for layer in layers:
            layer.training = False
        for module in inside:
            module.dropout = 0.0
        yield setup
    finally:
        for tap in reversed(taps):
            tap.remove()
        for layer, mode in zip(layers, modes, strict=True):
            layer.training = mode
        for module, share in zip(inside, shares, strict=True):
            module.dropout = share


DROPOUT_OFF = Change(TrialName(TrialKind.DROPOUT_OFF), "Drop no values.", dropout_off)


def _is_named_dropout(module: nn.Module) -> bool:
    named = "drop" in type(module).__name__.lower()
    return named and next(module.parameters(), None) is None


def _passing(_: Callable[..., Any]) -> Callable[..., Any]:
    def same(input: Any, *_: Any, **__: Any) -> Any:  # noqa: A002  (as torch calls it)
        return input

    return same


def _undropped(original: Callable[..., Any]) -> Callable[..., Any]:
    def attention(*args: Any, **kwargs: Any) -> Any:
        if len(args) > _DROPOUT_P:
            return original(*args[:_DROPOUT_P], 0.0, *args[_DROPOUT_P + 1 :], **kwargs)
        return original(*args, **{**kwargs, "dropout_p": 0.0})

    return attention
