"""Statistics of many CUDA tensors in one read of their memory, by Triton kernels."""

import os
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib.util import find_spec
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Parameter

from holter.record.signals.histograms import BINS, EXPONENTS, LOWEST, ZERO_BIN

SUM = 4  # the column of `Fused.summarise` that comes after those of `Stat`

# A row of the table: where a tensor lies, what of it is its own, and which chunks read it.
_BASE, _OTHER, _LOW, _HIGH, _FIRST, _COUNT, _ABSENT, _WIDTH = range(8)
_COMBINED = 1024  # partial results that are added up at once
_WORD = 16  # bytes of the widest load
Addresses = np.ndarray[Any, np.dtype[np.int64]]
_DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)  # as in `KINDS`


@dataclass(frozen=True, slots=True)
class Tiling:
    """How much of a tensor a program reads at once, and how often."""

    rows: int = 1024  # of 16 bytes
    steps: int = 4
    warps: int = 8


@dataclass(frozen=True, slots=True)
class _Table:
    device: torch.device
    tensors: int
    chunks: int
    launches: tuple[tuple[torch.dtype, int, int], ...]  # dtype, first chunk, chunks
    rows: Tensor
    partials: Tensor
    # Both are read by the device later than the call that launched it.
    staged: Tensor
    copies: tuple[Tensor, ...]


class _Known:
    """The table of the last list like others, which follows the list to other addresses."""

    def __init__(self, stream: object, addresses: Addresses, table: _Table) -> None:
        self.stream, self.addresses = stream, addresses
        # A table of its own: the other is remembered by its addresses.
        self.table = replace(
            table, rows=table.rows.clone(), partials=torch.empty_like(table.partials)
        )

    def move(self, addresses: Addresses) -> None:
        """Send new addresses; what was launched before still reads the old ones."""
        self.addresses, tensors = addresses, self.table.tensors
        size = tensors * _WIDTH
        staged = torch.empty(size, dtype=torch.int64, pin_memory=self.table.device.type == "cuda")
        rows = staged.numpy().reshape(tensors, _WIDTH)
        rows[:] = self.table.staged[:size].numpy().reshape(tensors, _WIDTH)
        rows[:, _BASE] = addresses[:tensors] & -_WORD
        if len(addresses) > tensors:
            rows[:, _OTHER] = addresses[tensors:] & -_WORD
        self.table.rows[:size].copy_(staged, non_blocking=True)


def _lies_plainly(tensor: Tensor) -> bool:
    """Whether a tensor's elements lie one behind the other, as they are."""
    return tensor.is_contiguous() and not tensor.is_neg()


def available() -> bool:
    """Whether the kernels can run here: Triton and an NVIDIA GPU it compiles for."""
    if find_spec("triton") is None:
        return False
    if _interpreted():
        return True
    return (
        torch.version.cuda is not None
        and torch.cuda.is_available()
        and torch.cuda.get_device_capability() >= (8, 0)
    )


class Fused:
    """Measures lists of tensors of one device, and remembers where the last few lists lay.

    Nothing waits for the device. A list that cannot be read raises ValueError with the reason.
    """

    def __init__(self, *, remembered: int = 8, tiling: Tiling | None = None) -> None:
        self._remembered = remembered
        self._tiling = tiling or Tiling()
        self._tables: OrderedDict[tuple[object, ...], _Table] = OrderedDict()
        self._last: weakref.WeakKeyDictionary[object, _Known] = weakref.WeakKeyDictionary()

    def summarise(self, tensors: Sequence[Tensor], *, like: object = None) -> Tensor:
        """The columns of `Stat` and the sum: a float32 row for each tensor.

        Lists that come with the same `like` have the same sizes and types: of them only the
        addresses are looked at.
        """
        table = self._table_like(tensors, None, like) if tensors else None
        return self._reduce(table, columns=5)

    def difference(
        self, before: Sequence[Tensor], after: Sequence[Tensor], *, like: object = None
    ) -> Tensor:
        """How tensors changed: norm of the change, norm before, unchanged elements; a row each."""
        if len(before) != len(after):
            raise ValueError(f"{len(before)} tensors before and {len(after)} after")
        table = self._table_like(before, after, like) if before else None
        return self._reduce(table, columns=3, mode=1)

    def adam(
        self,
        gradients: Sequence[Tensor],
        squares: Sequence[Tensor],
        limits: Tensor,
        *,
        like: object = None,
    ) -> Tensor:
        """Gradients over the roots of Adam's second moments, as `summarise` has them.

        `limits` has two float32 rows: what the roots of each tensor are divided by, and the least
        that they count as. In the place of zeros, roots that are less are counted.
        """
        if len(gradients) != len(squares):
            raise ValueError(f"{len(gradients)} gradients and {len(squares)} second moments")
        table = self._table_like(gradients, squares, like) if gradients else None
        return self._reduce(table, columns=5, mode=2, limits=limits)

    def histogram(self, tensors: Sequence[Tensor]) -> Tensor:
        """Elements by magnitude: an int64 row of `BINS` for each tensor.

        Bin i counts from 2**(LOWEST + i) up to twice that; the first also what is smaller, the last
        of `EXPONENTS` also what is larger. Zeros and non-finite elements have bins of their own.
        """
        if not tensors:
            return torch.zeros(0, BINS, dtype=torch.int64)
        table, tile = self._table(tensors, None), self._tiling
        from holter.watching.stats.kernels import KINDS, count

        counts = torch.zeros(table.tensors, BINS, dtype=torch.int64, device=table.device)
        if table.copies:  # as all sparse tensors are
            rows = table.rows[: table.tensors * _WIDTH].view(-1, _WIDTH)
            counts[:, ZERO_BIN] = rows[:, _ABSENT]
        with _on(table.device):
            for dtype, first, chunks in table.launches:
                count[(chunks,)](
                    table.rows, counts, table.tensors, first,
                    KINDS[dtype], LOWEST, EXPONENTS,
                    _WORD // dtype.itemsize, tile.rows, tile.steps,
                    num_warps=tile.warps,
                )  # fmt: skip
        return counts

    def _reduce(
        self, table: _Table | None, columns: int, mode: int = 0, limits: Tensor | None = None
    ) -> Tensor:
        if table is None:
            return torch.zeros(0, columns)
        tile = self._tiling
        result = torch.empty(table.tensors, columns, dtype=torch.float32, device=table.device)
        from holter.watching.stats.kernels import KINDS, combine, scan

        with _on(table.device):
            for dtype, first, chunks in table.launches:
                scan[(chunks,)](
                    table.rows, table.partials, table.tensors, table.chunks, first,
                    result if limits is None else limits,
                    KINDS[dtype], mode,
                    _WORD // dtype.itemsize, tile.rows, tile.steps,
                    num_warps=tile.warps,
                )  # fmt: skip
            combine[(table.tensors,)](
                table.rows, table.partials, table.chunks, result, mode, _COMBINED, num_warps=8
            )
        return result

    def _table_like(
        self, tensors: Sequence[Tensor], others: Sequence[Tensor] | None, like: object
    ) -> _Table:
        """The table of a list like others: where only addresses differ, only those are sent."""
        if like is None:
            return self._table(tensors, others)
        every = tensors if others is None else [*tensors, *others]
        try:
            addresses = np.fromiter(map(Tensor.data_ptr, every), np.int64, len(every))
        except RuntimeError:  # a sparse one has no address
            return self._table(tensors, others)
        device = tensors[0].device
        stream = torch.cuda.current_stream(device) if device.type == "cuda" else None
        known = self._last.get(like)
        if known is not None and known.stream == stream:
            moved = addresses != known.addresses
            if not moved.any():
                return known.table
            is_as_before = not (addresses[moved] - known.addresses[moved] & (_WORD - 1)).any()
            if is_as_before and all(map(_lies_plainly, every)):
                known.move(addresses)
                return known.table
        table = self._table(tensors, others)
        if not table.copies and all(map(_lies_plainly, every)):
            self._last[like] = _Known(stream, addresses, table)
        return table

    def _table(self, tensors: Sequence[Tensor], others: Sequence[Tensor] | None) -> _Table:
        key = _key([*tensors, *(others or ())], others is not None)
        if key is not None and key in self._tables:
            self._tables.move_to_end(key)
            return self._tables[key]
        with torch.no_grad():
            if others is None:
                first, second = [readable(tensor) for tensor in tensors], None
            else:
                pairs = [_comparable(*pair) for pair in zip(tensors, others, strict=True)]
                first, second = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            # What a sparse tensor does not store is zero.
            absent = [
                given.numel() - read.numel() if given.is_sparse else 0
                for given, read in zip(tensors, first, strict=True)
            ]
            copies = tuple(
                read
                for read, given in zip(
                    [*first, *(second or ())], [*tensors, *(others or ())], strict=True
                )
                if read is not given
            )
            table = _build(first, second, absent, copies, self._tiling)
        if key is not None and not copies:
            self._tables[key] = table
            if len(self._tables) > self._remembered:
                self._tables.popitem(last=False)
        return table


def readable(tensor: Tensor) -> Tensor:
    """The tensor itself where a kernel can read its memory in order, else a copy that it can."""
    if type(tensor) not in (Tensor, Parameter):
        raise ValueError(f"a {type(tensor).__name__} is not read by the kernels")
    if tensor.layout not in (torch.strided, torch.sparse_coo):
        raise ValueError(f"tensors of layout {tensor.layout} are not read by the kernels")
    if tensor.is_sparse:
        tensor = tensor.detach().coalesce().values()
    if tensor.is_complex():
        tensor = tensor.detach().abs()
    if not tensor.is_floating_point():
        raise ValueError(f"the kernels read floating point, not {tensor.dtype}")
    if tensor.is_neg():
        tensor = tensor.detach().resolve_neg()
    if tensor.dtype not in _DTYPES:
        tensor = tensor.detach().to(torch.float32)
    if not _dense(tensor):
        tensor = tensor.detach().contiguous()
    if tensor.data_ptr() % tensor.itemsize:
        tensor = tensor.detach().clone()
    return tensor


def _comparable(before: Tensor, after: Tensor) -> tuple[Tensor, Tensor]:
    """Two tensors whose elements lie in the same order and equally far from a 16-byte boundary."""
    if before.shape != after.shape:
        raise ValueError(f"a tensor of {tuple(before.shape)} became one of {tuple(after.shape)}")
    if before.is_sparse or after.is_sparse or before.is_complex() or after.is_complex():
        raise ValueError("differences of sparse or complex tensors are not read by the kernels")
    before, after = readable(before), readable(after)
    if before.dtype != after.dtype:
        wide = torch.promote_types(before.dtype, after.dtype)
        before, after = before.detach().to(wide), after.detach().to(wide)
    if before.stride() != after.stride():
        before, after = before.detach().contiguous(), after.detach().contiguous()
    if before.data_ptr() % _WORD != after.data_ptr() % _WORD:
        before, after = before.detach().clone(), after.detach().clone()
    return before, after


def _dense(tensor: Tensor) -> bool:
    if tensor.is_contiguous():
        return True
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def _key(tensors: Sequence[Tensor], pair: bool) -> tuple[object, ...] | None:
    """What a table depends on; None where the tensors have no address of their own."""
    if not {Tensor, Parameter}.issuperset(map(type, tensors)):
        return None
    if set(map(attrgetter("layout"), tensors)) != {torch.strided}:
        return None
    strides: tuple[object, ...] = ()
    if not all(map(Tensor.is_contiguous, tensors)):
        strides = tuple((tensor.shape, tensor.stride()) for tensor in tensors)
    device = tensors[0].device
    return (
        pair,
        torch.cuda.current_stream(device) if device.type == "cuda" else None,
        *map(Tensor.data_ptr, tensors),
        *map(Tensor.numel, tensors),
        *map(attrgetter("dtype"), tensors),
        *strides,
    )


def _build(
    tensors: Sequence[Tensor],
    others: Sequence[Tensor] | None,
    absent: list[int],
    copies: tuple[Tensor, ...],
    tile: Tiling,
) -> _Table:
    device = tensors[0].device
    if {tensor.device for tensor in (*tensors, *(others or ()))} != {device}:
        raise ValueError("the tensors are on several devices")
    if device.type != "cuda" and not _interpreted():
        raise ValueError(f"the kernels read CUDA tensors, not those of {device.type}")
    if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        raise ValueError("a table sent while a CUDA graph is captured would not outlive it")
    rows = np.zeros((len(tensors), _WIDTH), np.int64)
    address = np.array([tensor.data_ptr() for tensor in tensors], np.int64)
    sizes = np.array([tensor.numel() for tensor in tensors], np.int64)
    width = np.array([tensor.itemsize for tensor in tensors], np.int64)
    rows[:, _BASE] = address - address % _WORD
    rows[:, _LOW] = address % _WORD // width
    rows[:, _HIGH] = rows[:, _LOW] + sizes
    rows[:, _ABSENT] = absent
    if others is not None:
        other = np.array([tensor.data_ptr() for tensor in others], np.int64)
        rows[:, _OTHER] = other - other % _WORD
    chunk = _WORD // width * tile.rows * tile.steps
    rows[:, _COUNT] = np.where(sizes > 0, -(-rows[:, _HIGH] // chunk), 0)
    dtypes = list(dict.fromkeys(tensor.dtype for tensor in tensors))
    rank = {dtype: i for i, dtype in enumerate(dtypes)}
    ranks = np.array([rank[tensor.dtype] for tensor in tensors])
    order = np.argsort(ranks, kind="stable")
    rows[order, _FIRST] = np.cumsum(rows[order, _COUNT]) - rows[order, _COUNT]
    owners = np.repeat(order, rows[order, _COUNT])
    launches, first = [], 0
    for i, dtype in enumerate(dtypes):
        if count := int(rows[ranks == i, _COUNT].sum()):
            launches.append((dtype, first, count))
            first += count
    staged = torch.from_numpy(np.concatenate([rows.ravel(), owners]))
    if device.type == "cuda":
        staged = staged.pin_memory()
    return _Table(
        device=device,
        tensors=len(tensors),
        chunks=first,
        launches=tuple(launches),
        rows=staged.to(device, non_blocking=True),
        partials=torch.empty(5 * first, dtype=torch.float64, device=device),
        staged=staged,
        copies=copies,
    )


def _interpreted() -> bool:
    return os.environ.get("TRITON_INTERPRET") == "1"


def _on(device: torch.device) -> Any:
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()
