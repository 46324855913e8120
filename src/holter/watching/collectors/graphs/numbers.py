"""Losses on numbers, written by hand: squares and absolute values of a difference."""

import torch
from torch import Tensor

from holter.watching.collectors.graphs.nodes import Place
from holter.watching.collectors.graphs.outputs import value_of
from holter.watching.collectors.graphs.pattern import Pattern

_PRECISION = 64  # times the rounding error of a difference, below which a spread is none
_WHOLE = (torch.float32, torch.float64)


def squares(place: Place) -> Pattern | None:
    """`(prediction - target) ** 2`."""
    if place.argument("exponent") != 2:
        return None
    difference = place.saved("self")
    return None if difference is None else _numbers("mse_loss", place, difference)


def absolutes(place: Place) -> Pattern | None:
    """`(prediction - target).abs()`."""
    difference = place.saved("self")
    return None if difference is None else _numbers("l1_loss", place, difference)


def own_product(place: Place) -> Pattern | None:
    """A difference times itself."""
    first = place.operand(0)
    if first is None or first != place.operand(1):
        return None
    difference = place.saved("self")
    return None if difference is None else _numbers("mse_loss", place, difference)


def _numbers(function: str, place: Place, difference: Tensor) -> Pattern | None:
    minus = place.operand(0)
    if minus is None:
        return None
    minus = minus.unarranged()
    if minus.kind != "Sub" or (operand := minus.dynamic) is None or minus.shape is None:
        return None
    if difference.dtype not in _WHOLE or difference.numel() < 2 or operand.kind == "Unsqueeze":
        return None  # an axis is inserted where samples are compared in pairs on purpose
    prediction = value_of(operand)
    if prediction is None or prediction.device != difference.device:
        return None
    difference = difference.reshape(minus.shape)
    prediction = prediction.to(difference.dtype)  # from half precision, under autocast
    is_last = minus.operand(0) is None
    target = difference + prediction if is_last else prediction - difference
    known = _precise(target, prediction, difference)
    if known is None:
        return None
    target = _unexpanded(known, prediction)
    elements = difference.square() if function == "mse_loss" else difference.abs()
    return Pattern(function, prediction, target, elements)


def _precise(target: Tensor, prediction: Tensor, difference: Tensor) -> Tensor | None:
    """Targets that are a difference of two numbers, unless rounding has left nothing of them.

    That is so for identical targets, too: the constant of a penalty or of a label.
    """
    size = torch.maximum(prediction.abs().amax(), difference.abs().amax())
    least, largest = torch.aminmax(target)
    is_known = largest - least > _PRECISION * torch.finfo(difference.dtype).eps * size
    if target.is_cpu:
        return target if bool(is_known) else None
    return torch.where(is_known, target, torch.nan)  # nobody waits for the answer


def _unexpanded(target: Tensor, prediction: Tensor) -> Tensor:
    """A target as it was before it was broadcast against the prediction."""
    shape = (1,) * (target.dim() - prediction.dim()) + tuple(prediction.shape)
    if shape == tuple(target.shape):
        return target
    size = target.abs().amax() + prediction.abs().amax()
    near = _PRECISION * torch.finfo(target.dtype).eps * size
    for axis, length in enumerate(shape):
        if 1 < length == target.shape[axis]:
            along = target.narrow(axis, 0, 1)
            # On a device nobody waits for the answer: such a square is an accident.
            square = target.dim() == 2 and target.shape[0] == target.shape[1]
            if square if not target.is_cpu else bool(((target - along).abs() <= near).all()):
                target = along
    return target.squeeze(0) if target.dim() > 1 and len(target) == 1 else target
