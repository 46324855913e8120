"""Ring: the last steps of a training, what they were given, and the random state they had."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch
from torch import Generator, Tensor

_MEASURE_EVERY = 32  # batches of a loader between two measurements of their size

# Of each optimizer, of each group: its numbers besides the learning rate, which schedules may move.
Settings = tuple[tuple[Mapping[str, Any], ...], ...]
Rates = tuple[tuple[float, ...], ...]  # the same for the learning rate


@dataclass(slots=True)
class Fetch:
    """A batch as a loader delivered it, held by reference, and the random state right after."""

    loader: str
    batch: Any
    versions: tuple[int, ...]  # of its tensors: a write into one raises its version
    random: Generator
    random_cuda: Generator | None

    @classmethod
    def of(cls, loader: str, batch: Any, *, cuda: bool) -> Self:
        """A batch that was delivered right now."""
        versions = tuple([tensor._version for tensor in tensors_of(batch)])  # noqa: SLF001
        if not cuda:
            return cls(loader, batch, versions, torch.default_generator.clone_state(), None)
        return cls(loader, batch, versions, *_random())


@dataclass(slots=True)
class Entry:
    """One step: its fetches, the random state it began with, and learning rates."""

    step: int
    random: Generator
    random_cuda: Generator | None
    fetches: tuple[Fetch, ...] = ()
    rates: Rates = ()
    settings: Settings = ()
    stepped: tuple[str, ...] = ()  # labels of the optimizers that made the step
    # Parameters that the script wrote to before the step; None where there was no time to copy one.
    edits: dict[str, Tensor | None] = field(default_factory=dict)
    nbytes: int = 0  # of its batches


class Ring:
    """The last steps, as many as fit into `limit` bytes; the oldest are dropped first."""

    def __init__(self, *, steps: int, limit: int, cuda: bool) -> None:
        self._limit, self.is_on_gpu = limit, cuda
        self._sizes: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        self.most = steps
        self.entries: deque[Entry] = deque()
        self.open: Entry | None = None  # the step under way, the last of them

    def begin(self, step: int, fetches: Sequence[Fetch] = ()) -> None:
        """A step begins: whatever follows is its own, and what was fetched for it already."""
        last, entries = self.open, self.entries
        if last is not None and (last.nbytes or last.edits):
            nbytes = last.nbytes + sum(
                copy.nbytes for copy in last.edits.values() if copy is not None
            )
            if nbytes:
                self.most = max(min(self.most, self._limit // nbytes), 1)
        if self.is_on_gpu:
            self.open = Entry(step, *_random())
        else:
            self.open = Entry(step, torch.default_generator.clone_state(), None)
        entries.append(self.open)
        for fetch in fetches:
            self._hold(fetch)
        while len(entries) > self.most:
            entries.popleft()

    def fetched(self, loader: str, batch: Any) -> None:
        """A loader delivered a batch for the step under way."""
        self._hold(Fetch.of(loader, batch, cuda=self.is_on_gpu))

    def forget(self, before: int) -> None:
        """Drop the steps before one: what is kept of them would only fill the caches."""
        while len(self.entries) > 1 and self.entries[0].step < before:
            self.entries.popleft()

    def entry(self, step: int) -> Entry | None:
        """Return the entry of a step that has just ended or is under way."""
        if self.open is None or self.open.step == step:
            return self.open
        entry = self.entries[-2] if len(self.entries) > 1 else self.open
        return entry if entry.step == step else None

    def discard(self, loader: str) -> None:
        """What a loader delivered for the step under way is not used by it after all."""
        if self.open is not None:
            kept = [fetch for fetch in self.open.fetches if fetch.loader != loader]
            self.open.fetches = tuple(kept)
            self.open.nbytes = sum(self._sizes[fetch.loader] for fetch in kept)

    def since(self, step: int) -> list[Entry]:
        """The steps from one on, without what the first step's loaders delivered for others."""
        entries = [entry for entry in self.entries if entry.step >= step]
        fed = [{fetch.loader for fetch in entry.fetches} for entry in entries]
        if any(fed[1:]):  # of several loaders, only the steps to come tell which one trains
            training = set().union(*fed[1:])
            kept = [fetch for fetch in entries[0].fetches if fetch.loader in training]
            entries[0] = replace(entries[0], fetches=tuple(kept))
        return entries

    def _hold(self, fetch: Fetch) -> None:
        entry = self.open
        if entry is None:
            return
        self._measure(fetch)
        entry.fetches += (fetch,)
        entry.nbytes += self._sizes[fetch.loader]
        while entry.nbytes > self._limit and len(entry.fetches) > 1:
            # A script may go through all its data before training.
            entry.nbytes -= self._sizes[entry.fetches[0].loader]
            entry.fetches = entry.fetches[1:]

    def _measure(self, fetch: Fetch) -> None:
        seen = self._seen[fetch.loader] = self._seen.get(fetch.loader, -1) + 1
        if seen % _MEASURE_EVERY == 0:
            nbytes = sum(tensor.nbytes for tensor in tensors_of(fetch.batch))
            self._sizes[fetch.loader] = max(nbytes, 1)


def _random() -> tuple[Generator, Generator]:
    """Return copies of the generators of host and GPU: cheaper than states, which few need."""
    device = torch.cuda.default_generators[torch.cuda.current_device()]
    return torch.default_generator.clone_state(), device.clone_state()


def tensors_of(batch: Any) -> list[Tensor]:
    """The tensors of a batch, whatever it is wrapped in; quick, as it is called at each step."""
    if isinstance(batch, Tensor):
        return [batch]
    if type(batch) is list:  # as the loaders of torch make them
        tensors = [part for part in batch if isinstance(part, Tensor)]
        if len(tensors) == len(batch):
            return tensors
    if isinstance(batch, list | tuple):
        parts: Any = batch
    elif isinstance(batch, Mapping):
        parts = batch.values()
    else:
        return []
    return [tensor for part in parts for tensor in tensors_of(part)]
