"""Batches taken apart: their tensors, their size, some of their samples."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Batch


def tensors(batch: Batch) -> list[Tensor]:
    """Return all tensors of a batch in order."""
    return [each for each in pytree.tree_leaves(batch) if isinstance(each, Tensor)]


def changed(batch: Batch, change: Callable[[Tensor], Tensor]) -> Batch:
    """Return the batch with `change` applied to each tensor."""
    return pytree.tree_map(lambda each: change(each) if isinstance(each, Tensor) else each, batch)


def size(batch: Batch) -> int:
    """Return the number of samples: the first dimension that most tensors share."""
    firsts = Counter(len(tensor) for tensor in tensors(batch) if tensor.dim())
    if not firsts:
        raise InapplicableError("the batch holds no tensor with a batch dimension")
    return firsts.most_common(1)[0][0]


def take(batch: Batch, index: Tensor) -> Batch:
    """Return the samples of a batch at `index`; other content is left alone."""
    count = size(batch)
    return changed(
        batch,
        lambda each: each[index.to(each.device)] if each.dim() and len(each) == count else each,
    )


def first(batch: Batch, count: int) -> Batch:
    """Return the first `count` samples of a batch."""
    return take(batch, torch.arange(min(count, size(batch))))


def cloned(batch: Batch) -> Batch:
    """Return a copy that shares no memory, so that a step may write into it."""
    return changed(batch, lambda each: each.detach().clone())


def same_memory(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors share memory."""
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def leaves(value: Any) -> dict[str, Tensor]:
    """Return the tensors in a structure by their path: `[0]`, `['mask']`."""
    found, _ = pytree.tree_flatten_with_path(value)
    return {pytree.keystr(path): each for path, each in found if isinstance(each, Tensor)}
