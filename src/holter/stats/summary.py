"""Norm, extremes and counts of lists of tensors, without waiting for a device."""

from collections.abc import Callable, Sequence
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


def summarise(tensors: Sequence[Tensor]) -> Tensor:
    """Norm, largest magnitude, non-finite count and zero count: a float32 row for each tensor.

    Rows come in the order of `tensors`, which may differ in dtype and device; the result is on one
    device. Nothing waits for a device.
    """
    return _by_device(_summarise, tensors)


def norms(tensors: Sequence[Tensor]) -> Tensor:
    """The L2 norm of each tensor in float32: not finite where any element is not."""
    return _by_device(_norms, tensors)


def difference(before: Sequence[Tensor], after: Sequence[Tensor]) -> Tensor:
    """How tensors changed: norm of the change, norm before, unchanged elements; a row each."""
    return _by_device(_difference, before, after)


def _by_device(measure: Callable[..., Tensor], *lists: Sequence[Tensor]) -> Tensor:
    """Apply `measure` to the tensors of each device and put the rows back in order."""
    with torch.no_grad():
        places: dict[torch.device, list[int]] = {}
        for index, tensor in enumerate(lists[0]):
            places.setdefault(tensor.device, []).append(index)
        if len(places) == 1:
            return measure(*lists)
        # Rows go from the CPU to a device, never the other way: that would wait for it.
        target = max(places, key=lambda device: device.type != "cpu")
        rows = [
            measure(*([each[i] for i in at] for each in lists)).to(target, non_blocking=True)
            for at in places.values()
        ]
        order = [i for at in places.values() for i in at]
        gathered = torch.cat(rows)
        ordered = torch.empty_like(gathered)
        ordered[torch.tensor(order, device=target)] = gathered
        return ordered


def _summarise(tensors: Sequence[Tensor]) -> Tensor:
    dense = [_dense(each) for each in tensors]
    norm = _norms(dense)
    extremes = torch.stack([_absmax(each) for each in dense])
    filled = torch.stack([torch.count_nonzero(each) for each in dense])
    sizes = torch.tensor([each.numel() for each in dense], device=filled.device)
    return torch.stack([norm, extremes, _nonfinite(dense, norm), (sizes - filled).float()], dim=1)


def _norms(tensors: Sequence[Tensor]) -> Tensor:
    dense = [_dense(each) for each in tensors]
    return torch.stack(list(_foreach_norm(dense, 2, torch.float32)))


def _difference(before: Sequence[Tensor], after: Sequence[Tensor]) -> Tensor:
    change = _foreach_sub(list(after), list(before))
    # Two NaNs differ by NaN: such an element counts as changed, which no rule minds.
    moved = torch.stack([torch.count_nonzero(each) for each in change])
    sizes = torch.tensor([each.numel() for each in before], device=moved.device)
    return torch.stack([_norms(change), _norms(before), (sizes - moved).float()], dim=1)


def _dense(tensor: Tensor) -> Tensor:
    tensor = tensor.detach()
    if tensor.is_sparse:
        tensor = tensor.coalesce().values()
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


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
