"""How long a loader takes for a batch, with as many workers as one likes."""

import time
from itertools import islice
from typing import Any

from torch.utils.data import DataLoader, IterableDataset

_PATIENCE = 30.0  # seconds to wait for a batch of a worker


def with_workers(loader: DataLoader[Any], workers: int) -> DataLoader[Any]:
    """Return a loader of the same batches with another number of workers."""
    order: dict[str, Any] = {"batch_sampler": loader.batch_sampler}
    if isinstance(loader.dataset, IterableDataset) or loader.batch_sampler is None:
        order = {"batch_size": loader.batch_size, "drop_last": loader.drop_last}
        if not isinstance(loader.dataset, IterableDataset):
            order["sampler"] = loader.sampler
    return DataLoader(
        loader.dataset,
        **order,
        num_workers=workers,
        collate_fn=loader.collate_fn,
        pin_memory=loader.pin_memory,
        worker_init_fn=loader.worker_init_fn,
        multiprocessing_context=loader.multiprocessing_context if workers else None,
        timeout=_PATIENCE if workers else 0,
    )


def time_of_batch(loader: DataLoader[Any], count: int, seconds: float) -> float | None:
    """Return the mean time of at most `count` batches, the first ones aside; None if too few.

    With workers, as many batches are on their way when the clock starts as they prefetch.
    """
    ahead = 1 + loader.num_workers * (loader.prefetch_factor or 0)
    batches = iter(loader)
    try:
        if sum(1 for _ in islice(batches, ahead)) < ahead:
            return None
        began, taken = time.perf_counter(), 0
        for _ in islice(batches, count):
            taken += 1
            if time.perf_counter() - began > seconds:
                break
        return (time.perf_counter() - began) / taken if taken else None
    finally:
        del batches  # which ends the workers
