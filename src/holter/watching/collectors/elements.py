"""The mean of a loss function over its elements, whatever reduction it was asked for."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor

from holter.watching.collectors.loss_calls import reduction, wide

_BY_CLASS = ("cross_entropy", "nll_loss", "linear_cross_entropy")
_BY_ELEMENT = (
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "l1_loss",
    "mse_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
)
_BY_SAMPLE = (
    "cosine_embedding_loss",
    "kl_div",  # whose sum is meant to be divided as in reduction="batchmean"
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
)
_DIVIDES_BY_WEIGHT = ("mse_loss", "l1_loss")  # a mean is over the weights, not over their number


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of a loss over some elements, and their number (or the sum of their weights).

    Numbers on the CPU, where they cost nothing; tensors on a device, which nothing waits for.
    """

    loss: Tensor | float
    count: Tensor | float

    def __add__(self, other: "Total") -> "Total":
        return Total(self.loss + other.loss, self.count + other.count)

    @property
    def mean(self) -> Tensor | float:
        """The loss per element; NaN where there are none."""
        if isinstance(self.loss, Tensor) or isinstance(self.count, Tensor):
            return self.loss / self.count
        return self.loss / self.count if self.count else float("nan")

    def is_with(self, other: "Total") -> bool:
        """Whether both are on one device, so that they can be added."""
        return self.device == other.device

    @property
    def device(self) -> torch.device | None:
        """Where it is: nowhere if both are numbers."""
        return device_of(self.loss) or device_of(self.count)


def total(function: str, arguments: Mapping[str, Any], loss: Tensor, samples: int) -> Total | None:
    """Return the sum and the number of elements of a call, or None where the number is unknown.

    A mean is weighted by its number of samples, which costs nothing; a sum is divided by what
    `reduction="mean"` would divide by.
    """
    reduced = reduction(arguments)
    if reduced in ("mean", "batchmean"):
        return Total(number(loss) * samples, samples)
    count = elements(function, arguments)
    if count is None:
        return None
    return Total(number(loss if reduced == "sum" else loss.detach().sum()), count)


def elements(function: str, arguments: Mapping[str, Any]) -> Tensor | float | None:
    """Return what `reduction="mean"` divides the sum by, or None where that is not one number."""
    if function in _BY_CLASS:
        return _targets(arguments)
    if function in _BY_ELEMENT:
        weight = arguments.get("weight")
        if function in _DIVIDES_BY_WEIGHT and isinstance(weight, Tensor):
            return number(weight.detach().sum())
        return _broadcast(arguments, "input", "target")
    if function == "margin_ranking_loss":
        return _broadcast(arguments, "input1", "input2", "target")
    if function not in _BY_SAMPLE:
        return None
    first = next((value for value in arguments.values() if isinstance(value, Tensor)), None)
    if first is None:
        return None
    return first.shape[0] if first.dim() > 1 else 1


def number(value: Tensor) -> Tensor | float:
    """Return a scalar as a number if it is on the CPU, else as a copy: scripts divide in place."""
    value = value.detach()
    if value.is_cpu and type(value) is Tensor and not is_functorch_wrapped_tensor(value):
        return value.item()
    return value.to(wide(value), copy=True).reshape(1)


def device_of(value: Tensor | float) -> torch.device | None:
    """Return where a value is: nowhere if it is a number."""
    return value.device if isinstance(value, Tensor) else None


def _targets(arguments: Mapping[str, Any]) -> Tensor | float | None:
    """Return the sum of the weights of all targets that are not ignored."""
    prediction, target = arguments.get("input"), arguments.get("target")
    if not isinstance(prediction, Tensor) or not isinstance(target, Tensor):
        return None
    if target.is_floating_point():  # a distribution over the classes
        axis = 1 if target.dim() > 1 else 0
        return target.numel() / max(target.shape[axis], 1)
    ignored, weight = arguments.get("ignore_index"), arguments.get("weight")
    target = target.detach()
    if weight is None:
        if ignored is None:
            return target.numel()
        return number((target != ignored).sum())
    weights = weight.detach()[target.long().clamp(0, len(weight) - 1)]
    if ignored is not None:
        weights = weights.masked_fill(target == ignored, 0)
    return number(weights.sum())


def _broadcast(arguments: Mapping[str, Any], *names: str) -> int:
    given = [arguments.get(name) for name in names]
    shapes = [value.shape for value in given if isinstance(value, Tensor)]
    return math.prod(np.broadcast_shapes(*shapes))
