"""Ring: the last steps of a training, what they were given, and the random state they had."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

_MEASURE_EVERY = 32  # batches of a loader between two measurements of their size


@dataclass(slots=True)
class Fetch:
    """A batch as a loader delivered it, held by reference, and the random state right after."""

    loader: str
    batch: Any
    versions: tuple[int, ...]  # of its tensors: whoever writes into one raises its version
    random: Tensor
    random_cuda: Tensor | None


@dataclass(slots=True)
class Entry:
    """One step: its fetches, the random state it began with, learning rates and loss scale."""

    step: int
    random: Tensor
    random_cuda: Tensor | None
    fetches: list[Fetch] = field(default_factory=list)
    rates: tuple[tuple[float, ...], ...] = ()  # of each optimizer, of each group
    scale: float | None = None


class Ring:
    """The last steps, so many as fit into `limit` bytes; the oldest go first."""

    def __init__(self, *, steps: int, limit: int, cuda: bool) -> None:
        self._limit, self._cuda = limit, cuda
        self._sizes: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        self.most = steps
        self.entries: deque[Entry] = deque()

    @property
    def open(self) -> Entry | None:
        """The step under way."""
        return self.entries[-1] if self.entries else None

    def begin(self, step: int) -> None:
        """A step begins: whatever follows is its own."""
        self.entries.append(Entry(step, *self._random()))
        while len(self.entries) > self.most:
            self.entries.popleft()

    def fetched(self, loader: str, batch: Any) -> None:
        """A loader delivered a batch for the step under way."""
        entry = self.open
        if entry is None:
            return
        seen = self._seen[loader] = self._seen.get(loader, -1) + 1
        if seen % _MEASURE_EVERY == 0:
            self._measure(loader, batch)
        versions = tuple(each._version for each in tensors_of(batch))  # noqa: SLF001
        entry.fetches.append(Fetch(loader, batch, versions, *self._random()))

    def _measure(self, loader: str, batch: Any) -> None:
        self._sizes[loader] = max(sum(each.nbytes for each in tensors_of(batch)), 1)
        fit = self._limit // sum(self._sizes.values())
        self.most = max(min(self.most, fit), 1)

    def _random(self) -> tuple[Tensor, Tensor | None]:
        return torch.get_rng_state(), torch.cuda.get_rng_state() if self._cuda else None


def tensors_of(batch: Any) -> list[Tensor]:
    """The tensors of a batch, whatever it is wrapped in; quick, as it is called at each step."""
    if isinstance(batch, Tensor):
        return [batch]
    if isinstance(batch, list | tuple):
        parts: Any = batch
    elif isinstance(batch, Mapping):
        parts = batch.values()
    else:
        return []
    return [each for part in parts for each in tensors_of(part)]
