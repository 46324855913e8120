"""Where in the data a birth happened: the batch of the step, and the samples of the data set."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import TensorDataset, default_collate

from holter.lab.batches import size, take, tensors
from holter.lab.experiments._samples.datasets import fetch, origin, served
from holter.lab.experiments._samples.holdings import left_alone
from holter.lab.inapplicable import InapplicableError
from holter.lab.randomness import RandomState
from holter.lab.setup import Batch, Setup
from holter.record.births import Birth

_SECONDS = 2.0  # that the search may take


def placed(found: Birth, setup: Setup, delivered: Batch | None, *, place: int, of: int) -> Birth:
    """Return a birth that names the batch of its step, and its samples in the data set.

    `delivered` is the batch as the loader gave it; None if that is not known.
    """
    if found.phase == "update":
        return found
    indices = () if delivered is None else dataset_indices(setup, delivered, found.samples)
    if indices and found.sample_count == size(delivered) > 1:  # all of them
        indices = ()
    parts = [f"in batch {place + 1} of the {of} that make the step"] if of > 1 else []
    if indices:
        more = found.sample_count - len(indices)
        rest = f" and {more} more" if more else ""
        noun = "index" if len(indices) + more == 1 else "indices"
        parts.append(f"{noun} {', '.join(map(str, indices))}{rest} of the data set")
    says = "; ".join([found.says.removesuffix("."), *parts]) + "."
    return replace(found, micro_batch=place, micro_batches=of, indices=indices, says=says)


def dataset_indices(setup: Setup, batch: Batch, samples: Sequence[int]) -> tuple[int, ...]:
    """Return the indices in the training set of some samples of a batch as the loader gave it.

    Empty if one of them is not found or stands there twice: data that are augmented, or read from a
    stream, have none.
    """
    known = served(setup, "train") if samples else None
    if known is None:
        return ()
    dataset, positions, _ = origin(known.dataset, known.positions)
    random = RandomState.now()
    try:
        wanted = [_tensors_of(take(batch, torch.tensor([sample])), 1) for sample in samples]
        with left_alone(dataset):
            found = _found(dataset, positions, wanted)
    except (InapplicableError, RuntimeError, IndexError, TypeError):
        return ()
    finally:
        random.restore()
    return tuple(places[0] for places in found) if all(len(e) == 1 for e in found) else ()


def _found(
    dataset: Any, positions: Sequence[int], wanted: Sequence[Sequence[Tensor]]
) -> list[list[int]]:
    """Return the indices at which each of the wanted samples stands."""
    if isinstance(dataset, TensorDataset):
        chosen = torch.tensor(list(positions))
        matches = [_rows(dataset.tensors, each) for each in wanted]
        return [chosen[match[chosen]].tolist() for match in matches]
    found: list[list[int]] = [[] for _ in wanted]
    until = time.perf_counter() + _SECONDS
    for position in positions:
        if time.perf_counter() > until:
            return [[] for _ in wanted]
        here = _item(fetch(dataset, position), len(wanted[0]))
        for places, each in zip(found, wanted, strict=True):
            if _same(here, each):
                places.append(position)
    return found


def _item(item: Any, count: int) -> list[Tensor]:
    """Return the tensors of a sample; arrays and numbers are what a loader makes of them."""
    found = list(tensors(item))
    if len(found) >= count:
        return found
    return [each[0] for each in tensors(default_collate([item])) if each.dim()]


def _tensors_of(batch: Batch, count: int) -> list[Tensor]:
    return [each for each in tensors(batch) if each.dim() and len(each) == count]


def _rows(columns: Sequence[Tensor], sample: Sequence[Tensor]) -> Tensor:
    """Return the rows that a sample equals, in every tensor."""
    if len(columns) != len(sample) or size(list(columns)) == 0:
        raise InapplicableError("the batch has other tensors than the data set")
    equal = [
        _equal(column, row.expand_as(column)).flatten(1).all(1)
        if column.dim() > 1
        else _equal(column, row.expand_as(column))
        for column, row in zip(columns, sample, strict=True)
    ]
    return torch.stack(equal).all(0)


def _same(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    pairs = [(a, b[0]) for a, b in zip(one, other, strict=False)]
    return bool(pairs) and all(a.shape == b.shape and bool(_equal(a, b).all()) for a, b in pairs)


def _equal(one: Tensor, other: Tensor) -> Tensor:
    """Compare elements; NaN equals NaN."""
    same = one == other.to(one.dtype)
    return same | (one.isnan() & other.isnan()) if one.is_floating_point() else same
