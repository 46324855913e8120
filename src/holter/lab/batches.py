"""Batches taken apart: their tensors, their size, some of their samples.

A batch is whatever a loader delivers: tensors in tuples, lists, mappings, dataclasses, or in the
attributes of an object, as libraries define for their batches. Its tensors are the dense ones. A
sparse or nested tensor or a packed sequence is *opaque*: it is copied with the rest, and otherwise
left as it is.
"""

import copy
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from holter.lab.inapplicable import InapplicableError
from holter.lab.randomness import StepRandom
from holter.lab.setup import Batch
from holter.watching.structures import parts

_INSIDE = ".values"  # step of the path to the numbers inside of an opaque leaf
_DEPTH = 8  # of structures within structures
_Change = Callable[[str, Any], Any]  # of a path and a leaf


def tensors(batch: Batch) -> list[Tensor]:
    """Return all dense tensors of a batch in order."""
    return [leaf for _, leaf in _leaves(batch) if _is_dense(leaf)]


def leaves(value: Any) -> dict[str, Tensor]:
    """Return the dense tensors in a structure by their path: `[0]`, `['mask']`, `.edge_index`."""
    return {path: leaf for path, leaf in _leaves(value) if _is_dense(leaf)}


def opaque(value: Any) -> dict[str, str]:
    """Return what else holds numbers in a structure, by path: what it is, for people."""
    return {path: _kind(leaf) for path, leaf in _leaves(value) if _is_opaque(leaf)}


def contents(value: Any) -> dict[str, Tensor]:
    """Return the dense tensors in a structure and the numbers that opaque ones hold, by path."""
    found: dict[str, Tensor] = {}
    for path, leaf in _leaves(value):
        if _is_dense(leaf):
            found[path] = leaf
        elif (numbers := _numbers(leaf)) is not None:
            found[path + _INSIDE] = numbers
    return found


def changed(batch: Batch, change: Callable[[Tensor], Tensor]) -> Batch:
    """Return the batch with `change` applied to each dense tensor."""
    return _mapped(batch, lambda _, leaf: change(leaf) if _is_dense(leaf) else leaf)


def replaced(batch: Batch, values: Mapping[str, Tensor]) -> Batch:
    """Return the batch with other tensors at some paths, as `leaves` or `contents` name them."""

    def other(path: str, leaf: Any) -> Any:
        if _is_dense(leaf):
            return values.get(path, leaf)
        inside = values.get(path + _INSIDE)
        return leaf if inside is None else _with_numbers(leaf, inside)

    return _mapped(batch, other)


def detached(value: Any) -> Any:
    """Return a structure whose tensors, opaque ones too, are free of their graph."""
    return _mapped(value, lambda _, leaf: _each_tensor(leaf, Tensor.detach))


def cloned(batch: Batch) -> Batch:
    """Return a copy that shares no memory, so that a step may write into it."""
    return _mapped(
        batch, lambda _, leaf: _each_tensor(leaf, lambda tensor: tensor.detach().clone())
    )


def size(batch: Batch) -> int:
    """Return the number of samples: the first dimension that most tensors share."""
    firsts = Counter(len(tensor) for tensor in tensors(batch) if tensor.dim())
    if not firsts:
        raise InapplicableError("the batch holds no dense tensor with a batch dimension")
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


def as_real(tensor: Tensor) -> Tensor:
    """Return a dense tensor of real numbers; of complex ones both parts."""
    dense = tensor.detach().to_dense() if tensor.layout is not torch.strided else tensor.detach()
    return torch.view_as_real(dense.resolve_conj()) if dense.is_complex() else dense


def same_memory(one: Tensor, other: Tensor) -> bool:
    """Whether two dense tensors share memory."""
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def _is_dense(leaf: Any) -> bool:
    return (
        isinstance(leaf, Tensor)
        and leaf.layout is torch.strided
        and not leaf.is_nested
        and not leaf.is_quantized
    )


def _is_opaque(leaf: Any) -> bool:
    return isinstance(leaf, Tensor | PackedSequence) and not _is_dense(leaf)


def _kind(leaf: Any) -> str:
    if isinstance(leaf, PackedSequence):
        return f"a packed sequence of {len(leaf.batch_sizes)} steps"
    if leaf.is_nested:
        return f"a nested tensor of {leaf.size(0)} samples"
    kind = "quantized" if leaf.is_quantized else "sparse"
    return f"a {kind} tensor {tuple(leaf.shape)}"


def _numbers(leaf: Any) -> Tensor | None:
    """Return the numbers that an opaque leaf holds, if others can be put in their place."""
    if isinstance(leaf, PackedSequence):
        return leaf.data
    if not isinstance(leaf, Tensor) or leaf.layout not in _REBUILT:
        return None
    if leaf.layout is torch.sparse_coo:
        return leaf.detach()._values()  # noqa: SLF001  (also if it is not coalesced)
    return leaf.detach().values()


def _with_numbers(leaf: Any, numbers: Tensor) -> Any:
    if isinstance(leaf, PackedSequence):
        return leaf._replace(data=numbers)
    return _REBUILT[leaf.layout](leaf, numbers)


def _coo(leaf: Tensor, numbers: Tensor) -> Tensor:
    places = leaf._indices()  # noqa: SLF001
    return torch.sparse_coo_tensor(places, numbers, leaf.shape, is_coalesced=leaf.is_coalesced())


def _csr(leaf: Tensor, numbers: Tensor) -> Tensor:
    return torch.sparse_csr_tensor(leaf.crow_indices(), leaf.col_indices(), numbers, leaf.shape)


def _jagged(leaf: Any, numbers: Tensor) -> Tensor:
    made: Tensor = torch.nested.nested_tensor_from_jagged(numbers, leaf.offsets())
    return made


_REBUILT: Mapping[torch.layout, Callable[[Tensor, Tensor], Tensor]] = {
    torch.sparse_coo: _coo,
    torch.sparse_csr: _csr,
    torch.jagged: _jagged,
}


def _each_tensor(leaf: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(leaf, Tensor):
        return change(leaf)
    if isinstance(leaf, PackedSequence):
        return type(leaf)._make(_each_tensor(part, change) for part in leaf)
    return leaf


def _leaves(value: Any) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []

    def see(path: str, leaf: Any) -> Any:
        found.append((path, leaf))
        return leaf

    _mapped(value, see)
    return found


def _mapped(value: Any, change: _Change, path: str = "", depth: int = _DEPTH) -> Any:
    """Return a structure with other leaves; what has none of them stays the same object."""
    # The random states of a step are no samples of it.
    found = None if depth == 0 or isinstance(value, StepRandom) else parts(value)
    if found is None:
        return change(path, value)
    held = list(found)
    made = {key: _mapped(part, change, f"{path}{step}", depth - 1) for key, step, part in held}
    if all(made[key] is part for key, _, part in held):
        return value
    return _rebuilt(value, made)


def _rebuilt(value: Any, made: dict[Any, Any]) -> Any:
    if type(value) in (list, tuple):
        return type(value)(made.values())
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return type(value)._make(made.values())
    if type(value) is dict:
        return made
    other = copy.copy(value)
    if isinstance(value, tuple):
        return tuple(made.values())
    for key, part in made.items():
        if isinstance(value, Mapping | list):
            other[key] = part
        else:
            object.__setattr__(other, key, part)
    return other
