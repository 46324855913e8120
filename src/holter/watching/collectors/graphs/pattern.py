"""A loss function that was recognised, with what it was given."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from holter.watching.collectors.moments import LossComputed

INDICES = (torch.int64, torch.int32, torch.uint8, torch.bool)
_IGNORED = -100  # as in torch


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
            if self.function == "nll_loss" and target.dtype in INDICES:
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
            is_whole=is_whole,
        )


def _is_mask(constant: Tensor) -> bool:
    """Whether a constant selects elements; a device is not waited for."""
    if not constant.is_floating_point():
        return True
    return constant.is_cpu and bool(((constant == 0) | (constant == 1)).all())
