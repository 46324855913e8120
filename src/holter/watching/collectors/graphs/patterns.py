"""Loss functions written by hand, recognised by the operations of their graph.

The graph holds what backward needs, and that is nearly always the prediction and the target: an
index is saved by `gather`, labels by a product, a difference by its square.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from holter.watching.collectors.graphs.nodes import Place
from holter.watching.collectors.graphs.outputs import value_of
from holter.watching.collectors.moments import LossComputed

_IGNORED = -100  # as in torch
_PRECISION = 64  # times the rounding error of a difference, below which a spread is none
_NEAR_ONE = 1e-3  # the sum of probabilities
_WHOLE = (torch.float32, torch.float64)
_INDICES = (torch.int64, torch.int32, torch.uint8, torch.bool)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A loss function with what it was given, before it was reduced; tensors have no graph."""

    function: str
    prediction: Tensor
    target: Tensor
    elements: Tensor  # the loss of each

    def call(self, *, is_mean: bool, mask: Tensor | None, is_whole: bool) -> LossComputed | None:
        """The call of the loss function, as a tap would see it; None if the mask is a weight."""
        prediction, target, elements = self.prediction, self.target, self.elements
        arguments: dict[str, Any] = {"reduction": "mean" if is_mean else "sum"}
        if mask is not None:
            if mask.numel() != elements.numel() or not _is_mask(mask):
                return None
            mask = mask.reshape(elements.shape) != 0
            elements = torch.where(mask, elements, 0)
            if self.function == "nll_loss" and target.dtype in _INDICES:
                target = torch.where(mask, target, _IGNORED)
                arguments["ignore_index"] = _IGNORED
            elif mask.is_cpu and prediction.shape == target.shape == mask.shape:
                prediction, target = prediction[mask], target[mask]
            else:
                return None
        count = elements.numel() if mask is None else mask.sum()
        loss = elements.sum() / count if is_mean else elements.sum()
        arguments |= {"input": prediction, "target": target}
        samples = max(len(prediction), 1) if prediction.dim() else 1
        return LossComputed(
            self.function,
            loss,
            samples,
            arguments,
            is_handwritten=True,
            is_whole=is_whole,
        )


@torch.no_grad()
def recognised(place: Place) -> Pattern | None:
    """The loss function that is computed at a place, or None."""
    read = _PATTERNS.get(place.kind)
    return None if read is None else read(place)


def _is_mask(constant: Tensor) -> bool:
    """Whether a constant selects elements; a device is not waited for."""
    if not constant.is_floating_point():
        return True
    return constant.is_cpu and bool(((constant == 0) | (constant == 1)).all())


# Numbers: squares and absolute values of a difference.


def _squares(place: Place) -> Pattern | None:
    """`(prediction - target) ** 2`."""
    if place.argument("exponent") != 2:
        return None
    difference = place.saved("self")
    return None if difference is None else _numbers("mse_loss", place, difference)


def _absolutes(place: Place) -> Pattern | None:
    """`(prediction - target).abs()`."""
    difference = place.saved("self")
    return None if difference is None else _numbers("l1_loss", place, difference)


def _product(place: Place) -> Pattern | None:
    """A difference times itself, or `labels * log_probabilities`."""
    first = place.operand(0)
    if first is not None and first == place.operand(1):
        difference = place.saved("self")
        return None if difference is None else _numbers("mse_loss", place, difference)
    return _weighted_classes(place)


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

    That is so for targets that are all the same, too: the constant of a penalty or of a label.
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


# Classes: log-probabilities, of which the labels pick some.


def _gathered(place: Place) -> Pattern | None:
    """`log_probabilities.gather(1, labels)`."""
    source, axis, labels = place.operand(0), place.axis(), place.saved("index")
    if source is None or axis is None or labels is None or labels.shape[axis] != 1:
        return None
    logs = log_probabilities(source)
    if logs is None or logs.dim() != labels.dim() or logs.dim() < 2:
        return None
    if any(labels.shape[n] != size for n, size in enumerate(logs.shape) if n != axis):
        return None
    return _classes(logs.movedim(axis, -1), labels.squeeze(axis))


def _indexed(place: Place) -> Pattern | None:
    """`log_probabilities[range(len(labels)), labels]`."""
    source, indices = place.operand(0), place.argument("indices")
    if source is None or not isinstance(indices, tuple) or len(indices) != 2:
        return None
    rows, labels = indices
    if not (isinstance(rows, Tensor) and isinstance(labels, Tensor)):
        return None
    logs = log_probabilities(source)
    if logs is None or logs.dim() != 2 or labels.dtype not in _INDICES[:2]:
        return None
    if rows.shape != labels.shape or labels.shape != logs.shape[:1]:
        return None
    return _classes(logs, labels.detach())


def _classes(logs: Tensor, labels: Tensor) -> Pattern:
    rows, labels = logs.reshape(-1, logs.shape[-1]), labels.reshape(-1)
    places = labels.long().clamp(0, rows.shape[1] - 1)
    return Pattern("nll_loss", rows, labels, -rows.gather(1, places[:, None])[:, 0])


def _weighted_classes(place: Place) -> Pattern | None:
    """`labels * log_probabilities`, with labels as one-hot vectors or distributions."""
    source, labels = place.dynamic, place.constant()
    if source is None or labels is None or labels.shape != source.shape or labels.dim() < 2:
        return None
    logs, axis = log_probabilities(source), _class_axis(source)
    if logs is None or axis is None or labels.shape != logs.shape:
        return None
    rows = labels.movedim(axis, -1).reshape(-1, labels.shape[axis])
    if rows.is_floating_point():
        # Rewards and weights are no distributions; on a device that would have to be waited for.
        if not rows.is_cpu or bool(((rows.sum(1) - 1).abs() > _NEAR_ONE).any()):
            return None
        if bool((rows.amax(1) < 1).any()):
            logs = logs.movedim(axis, -1).reshape(rows.shape)
            return Pattern("nll_loss", logs, rows, -(rows * logs).sum(1))
    return _classes(logs.movedim(axis, -1), rows.to(torch.float32).argmax(1))


def log_probabilities(place: Place) -> Tensor | None:
    """The log-probabilities that are computed at a place, or None if they are something else."""
    if place.kind == "LogSoftmax":
        return place.saved("result")
    if place.kind == "Log":
        probabilities = place.saved("self")
        return None if probabilities is None or _softmax(place) is None else probabilities.log()
    if place.kind == "Sub":  # logits minus their logsumexp
        normaliser = place.operand(1)
        if normaliser is None or normaliser.kind != "Logsumexp":
            return None
        logits, total = normaliser.saved("self"), normaliser.saved("result")
        if logits is None or total is None or logits.dim() != total.dim():
            return None
        return logits - total
    return None


def _class_axis(place: Place) -> int | None:
    """The axis that log-probabilities are normalised over."""
    if place.kind == "LogSoftmax":
        return place.axis()
    if place.kind == "Log":
        softmax = _softmax(place)
        return None if softmax is None else softmax.axis()
    normaliser = place.operand(1)
    return None if normaliser is None else normaliser.axis()


def _softmax(place: Place) -> Place | None:
    """The softmax that a logarithm is taken of, behind a floor or not."""
    below = place.dynamic
    while below is not None and below.kind in ("Add", "Clamp", "ClampMin", "Maximum"):
        below = below.dynamic
    return below if below is not None and below.kind == "Softmax" else None


# Two classes: the logarithms of a probability and of its complement.


def _binary(place: Place) -> Pattern | None:
    """`labels * log(p) + (1 - labels) * log(1 - p)`, in either order and with either sign."""
    products = [operand for operand in place.operands if operand is not None]
    if len(products) != 2 or any(product.kind != "Mul" for product in products):
        return None
    positive: tuple[Tensor, Tensor] | None = None
    negative: tuple[Tensor, Tensor] | None = None
    for product in products:
        log, labels = product.dynamic, product.constant()
        argument = None if log is None or log.kind != "Log" else log.saved("self")
        if log is None or labels is None or argument is None:
            return None
        if _is_complement(log):
            negative = labels, argument
        else:
            positive = labels, argument
    if positive is None or negative is None:
        return None
    (labels, p), (others, q) = positive, negative
    if p.shape != q.shape or labels.shape != others.shape or labels.device != p.device:
        return None
    yes, no = labels.to(p.dtype).abs(), others.to(p.dtype).abs()
    if yes.is_cpu and bool(((yes + no - 1).abs() > _NEAR_ONE).any()):
        return None  # they are weights
    return Pattern("binary_cross_entropy", p, yes, -(yes * p.log() + no * q.log()))


def _is_complement(log: Place) -> bool:
    """Whether a logarithm is one of `1 - p`, behind a floor or not."""
    below = log.dynamic
    while below is not None and below.kind in ("Add", "Clamp", "ClampMin", "Maximum"):
        below = below.dynamic
    return below is not None and (
        below.kind == "Rsub" or (below.kind == "Sub" and below.operand(0) is None)
    )


_PATTERNS: dict[str, Callable[[Place], Pattern | None]] = {
    "Pow": _squares,
    "Abs": _absolutes,
    "Mul": _product,
    "Gather": _gathered,
    "Index": _indexed,
    "Add": _binary,
    "Sub": _binary,
}
