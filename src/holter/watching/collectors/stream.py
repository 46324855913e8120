"""What streams by in training: the samples of each pass over a loader, in bounded memory."""

import functools
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from holter.record.events import PassLabels
from holter.record.signals import (
    STREAM_COLLAPSED,
    STREAM_DISTINCT,
    STREAM_IGNORED,
    STREAM_MAX,
    STREAM_MEAN,
    STREAM_MIN,
    STREAM_READ,
    STREAM_SAMPLES,
    STREAM_SEEN,
    STREAM_STD,
    STREAM_TOKENS,
    STREAM_VALUES,
    Signal,
)
from holter.watching.collectors.batches import ANY, grid
from holter.watching.collectors.lane import Delivery, Lane
from holter.watching.collectors.moments import Depth
from holter.watching.collectors.outputs import readable
from holter.watching.collectors.roster import Subject
from holter.watching.collectors.stream_sketch import DistinctCount, RowHashes, mixed
from holter.watching.structures import parts

_TENSORS = 8  # of a batch
_NESTED = 2  # structures in a batch that are looked into
_ALLOWANCE = 0.4  # seconds that may be spent at first, whatever the share
_PART = 0.2  # of the share of the time that recording may take
_ELEMENTS = 4096  # of a batch that moments are taken from
_VALUES = 64  # of these that are counted one by one
_ROWS = 4  # fewer make no batch that could collapse
_LABELS = 256  # different ones that are counted
_LISTED = 32  # labels of an event
_TOLD = 16  # passes whose labels are told
_IGNORED = -100  # the label that torch's cross-entropy ignores by default
_MASK = "attention_mask"
_TOKENS = (torch.int64, torch.int32, torch.int16)


@dataclass(slots=True)
class _Moments:
    """Count, sum, sum of squares and range of numbers, about the first mean that was seen."""

    count: int = 0
    centre: float = 0.0
    total: float = 0.0
    square: float = 0.0
    low: float = math.inf
    high: float = -math.inf

    def add(self, numbers: Tensor) -> None:
        """Take some finite numbers."""
        low, high = (bound.item() for bound in torch.aminmax(numbers))
        if not (math.isfinite(low) and math.isfinite(high)):
            return
        if not self.count:
            self.centre = numbers.mean().item()
        apart = numbers - self.centre
        self.count += numbers.numel()
        self.total += apart.sum().item()
        self.square += torch.dot(apart, apart).item()
        self.low, self.high = min(self.low, low), max(self.high, high)

    @property
    def mean(self) -> float:
        return self.centre + self.total / self.count

    @property
    def std(self) -> float:
        return math.sqrt(max(self.square / self.count - (self.total / self.count) ** 2, 0.0))


@dataclass(slots=True)
class _Pass:
    """What is known of a pass over a loader."""

    loader: str
    iteration: object
    length: int | None  # in batches
    batches: int = 0
    samples: int = 0
    read: int = 0
    trained: int = 0  # calls of backward
    judged: int = 0  # batches that are large enough to collapse
    collapsed: int = 0
    seen: float = 0.0  # different samples of the loader up to its end
    distinct: DistinctCount = field(default_factory=DistinctCount)
    values: DistinctCount = field(default_factory=lambda: DistinctCount(1024))
    moments: _Moments = field(default_factory=_Moments)
    labels: Counter[int] | None = field(default_factory=Counter)  # None if there are too many
    tokens: int = 0  # elements of a sample, if its inputs are whole numbers
    ignored: int = 0
    maskable: int = 0  # elements that may be ignored


class Stream:
    """Reads the batches of training loaders on the host, as many as its part of the budget allows.

    A pass ends with its last batch, or when another over the same loader begins. One without a
    backward is no training.
    """

    emits: ClassVar[tuple[Signal, ...]] = (
        STREAM_SAMPLES,
        STREAM_READ,
        STREAM_DISTINCT,
        STREAM_SEEN,
        STREAM_COLLAPSED,
        STREAM_MEAN,
        STREAM_STD,
        STREAM_MIN,
        STREAM_MAX,
        STREAM_VALUES,
        STREAM_TOKENS,
        STREAM_IGNORED,
    )
    repeats: ClassVar[bool] = True  # until the last batch of a pass

    def __init__(self) -> None:
        self._open: dict[str, _Pass] = {}
        self._over: list[_Pass] = []
        self._seen: dict[str, DistinctCount] = {}
        self._owners: dict[str, tuple[str, ...]] = {}
        self._hashes: RowHashes | None = None
        self._began = 0.0
        self._spent = 0.0
        self._told = 0

    def join(self, lane: Lane) -> None:
        """Hear of training batches and, from the first one on, of steps."""
        self._lane = lane
        self._places = {signal: lane.places(signal) for signal in self.emits}
        lane.at_batch.append(self._take)

    def left(self, loader: str) -> float:
        """Return how many batches the pass over a loader still has, infinite if it does not say."""
        current = self._open.get(loader)
        if current is None:
            return 0
        return math.inf if current.length is None else current.length - current.batches

    def skip(self, backwards: int) -> None:
        """Count calls of backward that were not heard."""
        for current in self._open.values():
            current.trained += backwards

    def _take(self, given: Delivery) -> None:
        began = time.perf_counter()
        if self._hashes is None:
            self._hashes, self._began = RowHashes(self._lane.salt), began
            self._lane.at_backward.append(self._backward)
            self._lane.at_end.append(self._end)
            self._lane.at_close.append(self._close)
        current = self._open.get(given.loader)
        if current is None or current.iteration is not given.iteration:
            if current is not None:
                self._finish(current)
            current = _Pass(given.loader, given.iteration, given.batches)
            self._open[given.loader] = current
        current.batches += 1
        current.samples += given.samples
        if self._is_affordable(began):
            self._read(current, given.batch, given.samples, self._hashes)
            self._spent += time.perf_counter() - began

    def _is_affordable(self, now: float) -> bool:
        share = self._lane.share
        return share is None or self._spent <= _ALLOWANCE + _PART * share * (now - self._began)

    def _read(self, current: _Pass, batch: object, count: int, hashes: RowHashes) -> None:
        named = [
            (name, tensor) for name, tensor in _tensors(batch, _NESTED) if len(tensor) == count
        ][:_TENSORS]
        tensors = [tensor for _, tensor in named]
        if not tensors or not all(tensor.is_cpu for tensor in tensors):
            return
        current.read += count
        # The inputs are the largest tensors: not labels, lengths and identities of samples.
        most = max(tensor.numel() for tensor in tensors)
        inputs = hashes.of({n: each for n, each in enumerate(tensors) if each.numel() == most})
        others = {n: each for n, each in enumerate(tensors) if each.numel() < most}
        rows = mixed(inputs + hashes.of(others) if others else inputs)
        current.distinct.add(rows)
        self._seen.setdefault(current.loader, DistinctCount()).add(rows)
        if count >= _ROWS:
            current.judged += 1
            current.collapsed += bool((inputs == inputs[0]).all())
        _measure(current, tensors)
        _count_labels(current, tensors[-1])
        _count_ignored(current, named)

    def _backward(self, roots: Sequence[Tensor], opens: bool, depth: Depth) -> None:  # noqa: ARG002
        for current in self._open.values():
            current.trained += 1

    def _end(self, subjects: Sequence[Subject]) -> None:  # noqa: ARG002
        for label, current in list(self._open.items()):
            if current.batches == current.length:
                self._finish(self._open.pop(label))
        if self._over:
            over, self._over = self._over, []
            for ended in over:
                self._write(ended)

    def _close(self) -> None:
        for current in self._open.values():
            self._finish(current)
        self._open.clear()

    def _finish(self, ended: _Pass) -> None:
        """Take a pass as over; it is written when the open step ends."""
        if ended.read:
            ended.seen = self._seen[ended.loader].count
        self._over.append(ended)

    def _write(self, ended: _Pass) -> None:
        if not ended.trained:
            return
        label = ended.loader
        owner = self._owners.setdefault(label, (label,))
        row = self._lane.row
        for signal, value in _values(ended):
            row[self._places[signal][owner]] = value
        if ended.labels and self._told < _TOLD:
            self._told += 1
            listed = tuple(ended.labels.most_common(_LISTED))
            self._lane.event(PassLabels(label, listed, len(ended.labels) - len(listed)))


def _values(ended: _Pass) -> Iterator[tuple[Signal, float]]:
    yield STREAM_SAMPLES, ended.samples
    yield STREAM_READ, ended.read
    if ended.read:
        yield STREAM_DISTINCT, min(ended.distinct.count, ended.read)
        yield STREAM_SEEN, ended.seen
    if ended.judged:
        yield STREAM_COLLAPSED, ended.collapsed / ended.judged
    if ended.moments.count:
        yield STREAM_MEAN, ended.moments.mean
        yield STREAM_STD, ended.moments.std
        yield STREAM_MIN, ended.moments.low
        yield STREAM_MAX, ended.moments.high
    if ended.moments.count or ended.tokens:
        yield STREAM_VALUES, ended.values.count
    if ended.tokens:
        yield STREAM_TOKENS, ended.tokens
    if ended.maskable:
        yield STREAM_IGNORED, ended.ignored / ended.maskable


def _measure(current: _Pass, tensors: Sequence[Tensor]) -> None:
    """Take the moments of the inputs: the first floats, or else images in bytes.

    Of tokens, their number and that of different ones is what tells how samples may differ.
    """
    largest = max(tensors, key=Tensor.numel)
    if largest.dtype in _TOKENS and largest.dim() > 1:
        current.tokens = largest[0].numel()
        some = largest.reshape(-1)[_spread_out(largest.numel())]
        current.values.add(mixed(some.to(torch.int64)))
    floats = [tensor for tensor in tensors if tensor.is_floating_point()]
    images = [each for each in tensors if each.dtype is torch.uint8 and each.dim() > 2]
    if not floats and not images:
        return
    chosen = (floats or images)[0]
    numbers = chosen[grid(tuple(chosen.shape), _ELEMENTS)].reshape(-1).to(torch.float32)
    current.moments.add(numbers)
    if not current.tokens:
        some = numbers[_spread_out(numbers.numel())]
        current.values.add(mixed(some.view(torch.int32).to(torch.int64)))


@functools.lru_cache(maxsize=64)
def _spread_out(count: int) -> Tensor:
    """Places among so many elements: a fixed stride might meet one column of a table only."""
    places = np.unique((np.arange(_VALUES) * (math.sqrt(5) - 1) / 2 % 1 * count).astype(np.int64))
    return torch.from_numpy(places)


def _count_labels(current: _Pass, last: Tensor) -> None:
    """Count integer labels, one a sample, while they are few."""
    is_label = last.dim() == 1 or (last.dim() == 2 and last.shape[1] == 1)
    if current.labels is None or not is_label or last.is_floating_point():
        return
    labels, counts = np.unique(last.numpy(), return_counts=True)
    current.labels.update(dict(zip(labels.tolist(), counts.tolist(), strict=True)))
    if len(current.labels) > _LABELS:  # identities of samples, maybe
        current.labels = None


def _count_ignored(current: _Pass, named: Sequence[tuple[str, Tensor]]) -> None:
    """Count padding by the attention mask, or else targets that cross-entropy ignores."""
    mask = next((tensor for name, tensor in named if _MASK in name), None)
    last = named[-1][1]
    if mask is not None:
        current.ignored += mask.numel() - int(mask.count_nonzero())
        current.maskable += mask.numel()
    elif last.dtype is torch.int64:
        current.ignored += int((last == _IGNORED).sum())
        current.maskable += last.numel()


def _tensors(batch: object, depth: int, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of a batch that have numbers to read and samples, each with its path."""
    if isinstance(batch, Tensor):
        tensor = readable(batch, kinds=ANY)
        if tensor is not None and tensor.dim():
            yield name, tensor
    elif isinstance(batch, Mapping | list | tuple) or depth == _NESTED:
        for _, step, part in (parts(batch) if depth else None) or ():
            yield from _tensors(part, depth - 1, name + step)
