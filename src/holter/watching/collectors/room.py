"""Room: how much memory a GPU has left for holter. A training that needs all of it keeps it."""

import torch


def room(device: torch.device) -> int:
    """Return the bytes that this process can still take from a GPU."""
    free, total = torch.cuda.mem_get_info(device)
    memory = torch.cuda.memory
    share = getattr(memory, "get_per_process_memory_fraction", lambda _: 1.0)(device)
    return max(min(free, int(share * total) - memory.memory_reserved(device)), 0)


def fits(size: int, device: torch.device) -> bool:
    """Whether copies of some bytes fit easily beside what the training holds now."""
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return 2 * size <= cached or 4 * size <= room(device)
