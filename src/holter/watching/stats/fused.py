"""Statistics of many CUDA tensors in one read of their memory, by Triton kernels."""

import os
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
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
        # The addresses and the table of the last list like others.
        self._last: weakref.WeakKeyDictionary[object, tuple[tuple[object, ...], _Table]] = (
            weakref.WeakKeyDictionary()
        )

    def summarise(self, tensors: Sequence[Tensor], *, like: object = None) -> Tensor:
        """The columns of `Stat` and the sum: a float32 row for each tensor.

        Lists that come with the same `like` have the same sizes and types: where they also lie at
        the same addresses as the last one, nothing else is looked at.
        """
        return self._reduce(tensors, None, columns=5, like=like)

    def difference(self, before: Sequence[Tensor], after: Sequence[Tensor]) -> Tensor:
        """How tensors changed: norm of the change, norm before, unchanged elements; a row each."""
        if len(before) != len(after):
            raise ValueError(f"{len(before)} tensors before and {len(after)} after")
        return self._reduce(before, after, columns=3)

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
        self,
        tensors: Sequence[Tensor],
        others: Sequence[Tensor] | None,
        columns: int,
        like: object = None,
    ) -> Tensor:
        if not tensors:
            return torch.zeros(0, columns)
        table = self._table(tensors, others) if like is None else self._table_like(tensors, like)
        tile, pair = self._tiling, others is not None
        result = torch.empty(table.tensors, columns, dtype=torch.float32, device=table.device)
        from holter.watching.stats.kernels import KINDS, combine, scan

        with _on(table.device):
            for dtype, first, chunks in table.launches:
                scan[(chunks,)](
                    table.rows, table.partials, table.tensors, table.chunks, first,
                    KINDS[dtype], pair,
                    _WORD // dtype.itemsize, tile.rows, tile.steps,
                    num_warps=tile.warps,
                )  # fmt: skip
            combine[(table.tensors,)](
                table.rows, table.partials, table.chunks, result, pair, _COMBINED, num_warps=8
            )
        return result

    def _table_like(self, tensors: Sequence[Tensor], like: object) -> _Table:
        try:
            lie = (torch.cuda.current_stream(tensors[0].device), *map(Tensor.data_ptr, tensors))
        except RuntimeError:  # a sparse one has no address
            return self._table(tensors, None)
        known = self._last.get(like)
        if known is None or known[0] != lie:
            known = lie, self._table(tensors, None)
            if not known[1].copies:
                self._last[like] = known
        return known[1]

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
