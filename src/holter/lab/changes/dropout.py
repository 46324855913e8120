"""Dropout off, whoever applies it: layers, functions, attention, recurrent layers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import nn
from torch.nn import functional
from torch.nn.modules.dropout import _DropoutNd

from holter.lab.changes import Altered, TappedChange
from holter.lab.changes._hooks import around_models, modes_set
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
def _undropping(altered: Altered) -> Iterator[None]:
    """Drop nothing inside; layers whose class name says that they drop are in eval mode."""

    @contextmanager
    def quiet(model: nn.Module) -> Iterator[None]:
        inside = [m for m in model.modules() if isinstance(m, nn.RNNBase | nn.MultiheadAttention)]
        shares = [module.dropout for module in inside]
        layers = [module for module in model.modules() if _is_named_dropout(module)]
        if any(shares):
            altered()
        for module in inside:
            module.dropout = 0.0
        try:
            with modes_set(layers, training=False, altered=altered):
                yield
        finally:
            for module, share in zip(inside, shares, strict=True):
                module.dropout = share

    taps = [Tap(functional, name, partial(_passing, altered)) for name in _FUNCTIONS]
    taps.append(Tap(functional, "scaled_dot_product_attention", partial(_undropped, altered)))
    try:
        with around_models(quiet):
            yield
    finally:
        for tap in reversed(taps):
            tap.remove()


DROPOUT_OFF = TappedChange(TrialName(TrialKind.DROPOUT_OFF), "Drop no values.", _undropping)
dropout_off = DROPOUT_OFF.on_setup.applied


def _is_named_dropout(module: nn.Module) -> bool:
    named = "drop" in type(module).__name__.lower()
    return named and next(module.parameters(), None) is None


def _passing(altered: Altered, _: Callable[..., Any]) -> Callable[..., Any]:
    def same(
        input: Any,  # noqa: A002  (as torch calls it)
        p: float = 0.5,
        training: bool = True,
        *_: Any,
        **__: Any,
    ) -> Any:
        if p and training:
            altered()
        return input

    return same


def _undropped(altered: Altered, original: Callable[..., Any]) -> Callable[..., Any]:
    def attention(*args: Any, **kwargs: Any) -> Any:
        share = args[_DROPOUT_P] if len(args) > _DROPOUT_P else kwargs.get("dropout_p", 0.0)
        if not share:
            return original(*args, **kwargs)
        altered()
        if len(args) > _DROPOUT_P:
            return original(*args[:_DROPOUT_P], 0.0, *args[_DROPOUT_P + 1 :], **kwargs)
        return original(*args, **{**kwargs, "dropout_p": 0.0})

    return attention
