"""Batches taken apart: how many samples there are, some of them, others in their place."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Batch


def tensors(batch: Batch) -> list[Tensor]:
    """All tensors of a batch, in their order."""
    return [each for each in pytree.tree_leaves(batch) if isinstance(each, Tensor)]


def changed(batch: Batch, change: Callable[[Tensor], Tensor]) -> Batch:
    """The batch with each tensor replaced by what `change` makes of it."""
    return pytree.tree_map(lambda each: change(each) if isinstance(each, Tensor) else each, batch)


def size(batch: Batch) -> int:
    """How many samples a batch has: the first dimension that most of its tensors share."""
    firsts = Counter(len(tensor) for tensor in tensors(batch) if tensor.dim())
    if not firsts:
        raise InapplicableError("the batch holds no tensors with a first dimension")
    return firsts.most_common(1)[0][0]


def take(batch: Batch, index: Tensor) -> Batch:
    """The samples of a batch at `index`, whatever else it holds left alone."""
    count = size(batch)
    return changed(
        batch,
        lambda each: each[index.to(each.device)] if each.dim() and len(each) == count else each,
    )


def first(batch: Batch, count: int) -> Batch:
    """The first `count` samples of a batch."""
    return take(batch, torch.arange(min(count, size(batch))))


def cloned(batch: Batch) -> Batch:
    """A copy that shares no memory, so that whoever writes into a batch does no harm."""
    return changed(batch, lambda each: each.detach().clone())


def same_memory(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are views of the same values."""
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def leaves(value: Any) -> dict[str, Tensor]:
    """The tensors in a structure, by where they are: `[0]`, `['mask']`."""
    found, _ = pytree.tree_flatten_with_path(value)
    return {pytree.keystr(path): each for path, each in found if isinstance(each, Tensor)}
