"""The number of items that a summed loss is about to be divided by, where the script names it."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from holter.watching.collectors.loss_calls import reduction
from holter.watching.frames import Frames
from holter.watching.taps import TappedLoss

# The name by which transformers.Trainer passes it to a model and to a loss function of the user.
_NAME = "num_items_in_batch"


def items_of(call: TappedLoss, frames: Frames) -> Tensor | float | None:
    """Return what the function that called a loss function has to divide its sum by, or None.

    A training loss is recorded as it was divided, so that a validation loss has to be divided by
    the same count, which may include labels that a shift drops. In a process group the count is
    that of all processes.
    """
    if reduction(call.arguments) != "sum" or _is_shared():
        return None
    frame = next(frames.all(), None)
    count = frames.read(frame, _count) if frame is not None else None
    if isinstance(count, Tensor):
        return count.detach() if count.numel() == 1 and count.device == call.loss.device else None
    return float(count) if isinstance(count, int | float) and count > 0 else None


def _count(variables: Mapping[str, Any]) -> Any:
    return variables.get(_NAME)


def _is_shared() -> bool:
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_initialized():
        return False
    return distributed.get_world_size() > 1
