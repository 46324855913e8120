"""Norm, extremes and counts of lists of tensors, without waiting for a device."""

from collections.abc import Callable, Sequence
from enum import IntEnum

import torch

# Private to torch, and what its own clipping and optimizers are built on.
from torch import Tensor, _foreach_norm, _foreach_sub

from holter.record.signals.histograms import BINS, EXPONENTS, LOWEST, NONFINITE_BIN, ZERO_BIN


class Stat(IntEnum):
    """The columns of what `summarise` returns."""

    NORM = 0
    ABSMAX = 1
    NONFINITE = 2
    ZEROS = 3


_BIN_OF_EXPONENT = torch.arange(-127, 129).sub(LOWEST).clamp(0, EXPONENTS - 1)
_BIN_OF_EXPONENT[255] = NONFINITE_BIN

_TINY = 1e-13  # a float32 norm under this may be made of squares that have vanished


def summarise(tensors: Sequence[Tensor]) -> Tensor:
    """Norm, largest magnitude, non-finite count and zero count: a float32 row for each tensor.

    Rows come in the order of `tensors`, which may differ in dtype and device; the result is on one
    device. Nothing waits for a device.
    """
    return _by_device(_summarise, tensors)


def norms(tensors: Sequence[Tensor]) -> Tensor:
    """The L2 norm of each tensor in float32: not finite where any element is not."""
    return _by_device(_norms, tensors)


def extremes(tensors: Sequence[Tensor]) -> Tensor:
    """The largest magnitude of each tensor in float32: NaN where any element is."""
    return _by_device(_extremes, tensors)


def difference(before: Sequence[Tensor], after: Sequence[Tensor]) -> Tensor:
    """How tensors changed: norm of the change, norm before, unchanged elements; a row each."""
    return _by_device(_difference, before, after)


def histogram(tensors: Sequence[Tensor]) -> Tensor:
    """Elements by magnitude: an int64 row of `BINS` for each tensor, as the fused kernel counts."""
    return _by_device(_histogram, tensors)


def _by_device(measure: Callable[..., Tensor], *lists: Sequence[Tensor]) -> Tensor:
    """Apply `measure` to the tensors of each device and put the rows back in order."""
    with torch.no_grad():
        places: dict[torch.device, list[int]] = {}
        for index, tensor in enumerate(lists[0]):
            places.setdefault(tensor.device, []).append(index)
        if len(places) <= 1:
            return measure(*lists)
        # Rows go from the CPU to a device, never the other way: that would wait for it.
        target = max(places, key=lambda device: device.type != "cpu")
        rows = [
            measure(*([given[i] for i in at] for given in lists)).to(target, non_blocking=True)
            for at in places.values()
        ]
        order = [i for at in places.values() for i in at]
        gathered = torch.cat(rows)
        ordered = torch.empty_like(gathered)
        ordered[torch.tensor(order, device=target)] = gathered
        return ordered


def _summarise(tensors: Sequence[Tensor]) -> Tensor:
    if not tensors:
        return torch.zeros(0, len(Stat))
    stored = [_stored(tensor) for tensor in tensors]
    norm = _norms(stored)
    largest = _extremes(stored)
    filled = torch.stack([torch.count_nonzero(tensor) for tensor in stored])
    # What a sparse tensor does not store is zero.
    sizes = torch.tensor([tensor.numel() for tensor in tensors], device=filled.device)
    return torch.stack([norm, largest, _nonfinite(stored, norm), (sizes - filled).float()], dim=1)


def _norms(tensors: Sequence[Tensor]) -> Tensor:
    if not tensors:
        return torch.zeros(0)
    real = [_real(_stored(tensor)) for tensor in tensors]
    single = [
        tensor.to(torch.float32) if tensor.dtype == torch.float64 else tensor for tensor in real
    ]
    norm = torch.stack(list(_foreach_norm(single, 2, torch.float32)))
    if norm.device.type == "cpu":
        # Squares of 1e20 overflow and squares of 1e-25 vanish in float32: look again, at these.
        for i in torch.nonzero((norm < _TINY) | norm.isinf()).flatten().tolist():
            norm[i] = torch.linalg.vector_norm(real[i].to(torch.float64))
    return norm


def _extremes(tensors: Sequence[Tensor]) -> Tensor:
    if not tensors:
        return torch.zeros(0)
    return torch.stack([_absmax(_stored(tensor)) for tensor in tensors])


def _difference(before: Sequence[Tensor], after: Sequence[Tensor]) -> Tensor:
    if not before:
        return torch.zeros(0, 3)
    change = _foreach_sub(list(after), list(before))
    # Two NaNs differ by NaN: such an element counts as changed; no rule depends on it.
    moved = torch.stack([torch.count_nonzero(tensor) for tensor in change])
    sizes = torch.tensor([tensor.numel() for tensor in before], device=moved.device)
    return torch.stack([_norms(change), _norms(before), (sizes - moved).float()], dim=1)


def _histogram(tensors: Sequence[Tensor]) -> Tensor:
    if not tensors:
        return torch.zeros(0, BINS, dtype=torch.int64)
    rows = []
    for tensor in tensors:
        stored = _real(_stored(tensor)).reshape(-1)
        single = stored.to(torch.float32)
        # The exponent's bits, counted as they are: several times faster than `torch.frexp`.
        counts = torch.bincount((single.view(torch.int32) >> 23) & 0xFF, minlength=256)
        row = torch.zeros(BINS, dtype=torch.int64, device=counts.device)
        row.index_add_(0, _BIN_OF_EXPONENT.to(counts.device), counts)
        zeros = stored.numel() - torch.count_nonzero(stored)
        overflowed = stored.isfinite().sum() - single.isfinite().sum()  # of float64, or none
        row[0] -= zeros
        row[EXPONENTS - 1] += overflowed
        row[NONFINITE_BIN] -= overflowed
        # What a sparse tensor leaves out is zero.
        row[ZERO_BIN] = zeros + tensor.numel() - _stored(tensor).numel()
        rows.append(row)
    return torch.stack(rows)


def _stored(tensor: Tensor) -> Tensor:
    tensor = tensor.detach()
    return tensor.coalesce().values() if tensor.is_sparse else tensor


def _real(tensor: Tensor) -> Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _absmax(tensor: Tensor) -> Tensor:
    if tensor.numel() == 0:
        return torch.zeros((), device=tensor.device)
    low, high = torch.aminmax(tensor.abs() if tensor.is_complex() else tensor)
    return torch.maximum(-low, high).float()


def _nonfinite(tensors: Sequence[Tensor], norm: Tensor) -> Tensor:
    """Counts the non-finite elements; on a CPU only where the norm says that there are any."""
    if norm.device.type == "cpu":
        counts = torch.zeros(len(tensors))
        for i in torch.nonzero(~torch.isfinite(norm)).flatten().tolist():
            counts[i] = float(tensors[i].numel() - int(torch.isfinite(tensors[i]).sum()))
        return counts
    return torch.stack(
        [tensor.numel() - torch.isfinite(tensor).sum() for tensor in tensors]
    ).float()
