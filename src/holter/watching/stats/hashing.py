"""Hashes of tensors by their bits: equal tensors have equal ones on every device and rank."""

from collections.abc import Sequence

import torch
from torch import Tensor

BITS = 24  # that a float32 holds exactly
_CHUNK = 1 << 22  # elements that are widened to 64 bits at a time
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@torch.no_grad()
def hashes(tensors: Sequence[Tensor]) -> Tensor:
    """Return `BITS` bits of a 64-bit hash of each tensor as float32; nothing waits for a device.

    The hash is the sum of the squared bit patterns modulo 2**64. A sum of the patterns themselves
    would often miss tensors that differ by single units in the last place. Sums of integers do not
    depend on the order in which a device adds them.
    """
    parts = [_hash(tensor.detach()) for tensor in tensors]
    # From the CPU to a device, never the other way: that would wait for it.
    target = next((part.device for part in parts if not part.is_cpu), parts[0].device)
    full = torch.stack([part.to(target, non_blocking=True) for part in parts])
    folded = full ^ (full >> BITS) ^ (full >> 2 * BITS)
    return (folded & ((1 << BITS) - 1)).to(torch.float32)


def _hash(tensor: Tensor) -> Tensor:
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    bits = tensor.reshape(-1).view(_INTEGERS[tensor.element_size()])
    total = torch.zeros((), dtype=torch.int64, device=tensor.device)
    for part in torch.split(bits, _CHUNK):
        total = total + part.to(torch.int64).square().sum()
    return total
