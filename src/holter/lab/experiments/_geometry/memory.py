"""The largest batch that fits into memory: by trying, or by what each sample takes."""

import gc
import os
from pathlib import Path

import torch
from torch import Tensor

from holter.lab.batches import size, take
from holter.lab.setup import Batch, Setup

_SPARED = 0.7  # share of the free memory that is counted on


def largest_by_trying(setup: Setup, batch: Batch, doublings: int) -> dict[str, int]:
    """Whole training steps on a CUDA device with batches repeated, until memory ends."""
    fits = samples = size(batch)
    for _ in range(doublings):
        larger = _repeated(batch, samples, 2 * fits)
        try:
            setup.step(*[larger] * setup.accumulation)
            torch.cuda.synchronize(setup.device)
        except torch.OutOfMemoryError:
            return {"tried": fits}
        except Exception:  # a script with a fixed batch size
            return {} if fits == samples else {"at least": fits}
        else:
            fits *= 2
        finally:
            for optimizer in setup.optimizers:
                optimizer.zero_grad(set_to_none=True)
            del larger
            gc.collect()
            torch.cuda.empty_cache()
    return {"at least": fits}


def largest_by_estimate(setup: Setup, batch: Batch, doublings: int) -> dict[str, int]:
    """What the graph of a forward pass keeps, with one batch and with two, against free memory."""
    samples, free = size(batch), _free()
    if free is None:
        return {}
    try:
        one = _kept(setup, batch)
        two = _kept(setup, _repeated(batch, samples, 2 * samples))
    except Exception:  # a step with a fixed batch size
        return {}
    each = (two - one) / samples
    if each <= 0:
        return {}
    # The gradients of what is kept are as large, though not all at the same time.
    fits = _SPARED * free / (2 * each)
    if fits >= samples * 2**doublings:
        return {"at least": samples * 2**doublings}
    return {"estimated": int(fits)}


def _repeated(batch: Batch, samples: int, count: int) -> Batch:
    return take(batch, torch.arange(count) % samples)


def _kept(setup: Setup, batch: Batch) -> int:
    """Bytes that the graph of the loss keeps, without parameters."""
    owned = {
        parameter.untyped_storage().data_ptr()
        for model in setup.models.values()
        for parameter in model.parameters()
    }
    found: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in owned:
            found[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = setup.loss(batch)
    total = sum(found.values())
    del loss
    return total


def _free() -> int | None:
    """Bytes that this process may still take; None where nobody says."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
    except (AttributeError, OSError, ValueError):  # another system
        return None
    return min(free, _left_in_container() or free)


def _left_in_container() -> int | None:
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text().strip()
        used = int((folder / "memory.current").read_text())
        return None if limit == "max" else max(int(limit) - used, 1)
    except (OSError, ValueError):
        return None
