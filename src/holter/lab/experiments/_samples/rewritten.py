"""Whether reading a sample changes what the data set holds: an augmentation that works in place."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import DataLoader, Subset

from holter.lab.experiments._samples.datasets import Split, fetch
from holter.lab.experiments._samples.holdings import left_alone

_SAMPLES = 8
_LARGEST = 2**22  # numbers of a row


def rewritten(loader: DataLoader[Any] | None, split: Split) -> float | None:
    """Return the share of samples whose numbers change where they are stored; None if unknown.

    Each is read before: a data set may fill a cache. Numbers in another order are no others.
    Workers change copies of their own, which end with them.
    """
    if loader is None or split.served is None:
        return None
    if loader.num_workers and not loader.persistent_workers:
        return None
    dataset, places = split.served.dataset, [each.index for each in split.samples[:_SAMPLES]]
    while isinstance(dataset, Subset):
        places = [int(dataset.indices[place]) for place in places]
        dataset = dataset.dataset
    held = _stores(dataset)
    if not held or not places:
        return None
    changed = 0
    with left_alone(dataset):
        for place in places:
            fetch(dataset, place)
            before = [_row(store, place).copy() for store in held]
            fetch(dataset, place)
            after = [_row(store, place) for store in held]
            pairs = zip(before, after, strict=True)
            changed += any(not _same_numbers(one, other) for one, other in pairs)
            for row, kept in zip(after, before, strict=True):
                row[...] = kept
    return changed / len(places)


def _stores(dataset: Any) -> list[Any]:
    """Return what holds a row of numbers for each sample: arrays, tensors, lists of them."""
    if not hasattr(dataset, "__dict__") or not hasattr(dataset, "__len__"):
        return []
    count = len(dataset)
    return [
        each
        for each in vars(dataset).values()
        if isinstance(each, Tensor | np.ndarray | list)
        and (isinstance(each, list) or each.ndim > 1)
        and len(each) == count > 0
        and _is_row(each[0])
    ]


def _is_row(one: Any) -> bool:
    if isinstance(one, Tensor):
        return one.is_cpu and one.dim() > 0 and 1 < one.numel() <= _LARGEST and not one.is_sparse
    is_array = isinstance(one, np.ndarray) and one.ndim > 0 and 1 < one.size <= _LARGEST
    return is_array and one.dtype.kind in "iuf" and one.flags.writeable


def _row(store: Sequence[Any], place: int) -> Any:
    """Return a view of what is stored for a sample."""
    row = store[place]
    return row.detach().numpy() if isinstance(row, Tensor) else row


def _same_numbers(one: Any, other: Any) -> bool:
    return np.array_equal(one, other, equal_nan=True) or np.array_equal(
        np.sort(one, axis=None), np.sort(other, axis=None), equal_nan=True
    )
