"""Norm, extremes and counts of lists of tensors, without waiting for a device."""

from collections.abc import Sequence
from enum import IntEnum

import torch

# Private to torch, and what its own clipping and optimizers are built on.
from torch import Tensor, _foreach_norm, _foreach_sub


class Stat(IntEnum):
    """The columns of what `summarise` returns."""

    NORM = 0
    ABSMAX = 1
    NONFINITE = 2
    ZEROS = 3


@torch.no_grad()
def summarise(tensors: Sequence[Tensor]) -> Tensor:
    """Norm, largest magnitude, non-finite count and zero count: a float32 row for each tensor.

    The rows come in the order of `tensors`, on the device of the first. Nothing waits for a
    device. All tensors of a call are on one device; they may differ in dtype.
    """
    dense = [_dense(each) for each in tensors]
    norm = norms(dense)
    extremes = torch.stack([_absmax(each) for each in dense])
    filled = torch.stack([torch.count_nonzero(each) for each in dense])
    sizes = torch.tensor([each.numel() for each in dense], device=filled.device)
    return torch.stack([norm, extremes, _nonfinite(dense, norm), (sizes - filled).float()], dim=1)


@torch.no_grad()
def norms(tensors: Sequence[Tensor]) -> Tensor:
    """The L2 norm of each tensor in float32: not finite where any element is not."""
    dense = [_dense(each) for each in tensors]
    return torch.stack(list(_foreach_norm(dense, 2, torch.float32)))


@torch.no_grad()
def difference(before: Sequence[Tensor], after: Sequence[Tensor]) -> Tensor:
    """How tensors changed: norm of the change, norm before, unchanged elements; a row each."""
    change = _foreach_sub(list(after), list(before))
    # Two NaNs differ by NaN: such an element counts as changed, which no rule minds.
    moved = torch.stack([torch.count_nonzero(each) for each in change])
    sizes = torch.tensor([each.numel() for each in before], device=moved.device)
    return torch.stack([norms(change), norms(before), (sizes - moved).float()], dim=1)


def _dense(tensor: Tensor) -> Tensor:
    if tensor.is_sparse:
        tensor = tensor.coalesce().values()
    return tensor.detach()


def _absmax(tensor: Tensor) -> Tensor:
    if tensor.numel() == 0:
        return torch.zeros((), device=tensor.device)
    low, high = torch.aminmax(tensor)
    return torch.maximum(-low, high).float()


def _nonfinite(tensors: Sequence[Tensor], norm: Tensor) -> Tensor:
    """Counts the non-finite elements; on a CPU only where the norm says that there are any."""
    if norm.device.type == "cpu":
        counts = torch.zeros(len(tensors))
        for i in torch.nonzero(~torch.isfinite(norm)).flatten().tolist():
            counts[i] = float(tensors[i].numel() - int(torch.isfinite(tensors[i]).sum()))
        return counts
    return torch.stack([each.numel() - torch.isfinite(each).sum() for each in tensors]).float()
