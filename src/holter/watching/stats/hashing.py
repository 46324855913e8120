"""Hashes of tensors by their bits: equal tensors have equal ones on every device and rank."""

from collections.abc import Sequence

import torch
from torch import Tensor

BITS = 24  # that a float32 holds exactly
_WORD = 8  # bytes
_FACTOR = 0x9E3779B97F4A7C15 - (1 << 64)  # odd, as a signed word
_CHUNK = 1 << 22  # words that are read at a time
_CHUNK_ON_CPU = 1 << 16  # as many as stay in the cache


@torch.no_grad()
def hashes(tensors: Sequence[Tensor]) -> Tensor:
    """Return `BITS` bits of a 64-bit hash of each tensor as float32; nothing waits for a device.

    The hash is the sum of `word * (word + constant)` over the words of 64 bits, modulo 2**64. A sum
    of the words themselves would often miss tensors that differ by single units in the last place.
    Sums of integers do not depend on the order in which a device adds them.
    """
    parts = [_hash(tensor.detach()) for tensor in tensors]
    # From the CPU to a device, never the other way: that would wait for it.
    target = next((part.device for part in parts if not part.is_cpu), parts[0].device)
    full = torch.stack([part.to(target, non_blocking=True) for part in parts])
    folded = full ^ (full >> BITS) ^ (full >> 2 * BITS)
    return (folded & ((1 << BITS) - 1)).to(torch.float32)


def _hash(tensor: Tensor) -> Tensor:
    total = torch.zeros((), dtype=torch.int64, device=tensor.device)
    for words in torch.split(_words(tensor), _CHUNK_ON_CPU if tensor.is_cpu else _CHUNK):
        total = total + (words + _FACTOR).mul_(words).sum()
    return total


def _words(tensor: Tensor) -> Tensor:
    """Return the bits of a tensor as words of 64 bits, filled up with zeros at the end."""
    flat = tensor.reshape(-1)
    size = flat.element_size()
    missing = -flat.numel() * size % _WORD
    if missing:
        flat = torch.nn.functional.pad(flat.view(torch.uint8), (0, missing))
    elif flat.storage_offset() * size % _WORD:
        flat = flat.clone()
    return flat.view(torch.int64)
