"""Names for the loaders of a training, and how each is set up."""

import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from holter.record.events import LoaderSeen

_SHUFFLING = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)
_MOST = 16  # loaders with a name of their own: some scripts make one every epoch


@dataclass(slots=True, eq=False)
class Iteration:
    """A pass over a loader: where the script began it, and before which step.

    The loader may be gone while its iterator is still in use; a data set may be anything.
    """

    label: str
    loader: weakref.ref[DataLoader[Any]]
    dataset: "weakref.ref[Any] | None"
    takes_all: bool  # of the data set: no sampler selects a part
    chain: int
    step: int
    batches: int | None  # in all of it


class Loaders:
    """Numbers loaders as they come; an iterator has the name of its loader."""

    def __init__(self) -> None:
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._iterations: weakref.WeakKeyDictionary[Any, Iteration] = weakref.WeakKeyDictionary()
        self._count = 0

    def begin(
        self, loader: DataLoader[Any], iterator: object, *, chain: int, step: int
    ) -> tuple[str, bool]:
        """Return the name of a loader whose iteration begins, and whether it is new."""
        name = self._names.get(loader)
        is_new = name is None
        if name is None:
            name = f"loader {self._count}" if self._count < _MOST else "other loaders"
            self._count += 1
            self._names[loader] = name
        self._iterations[iterator] = Iteration(
            name,
            weakref.ref(loader),
            _weakly(loader.dataset),
            isinstance(loader.sampler, RandomSampler | SequentialSampler),
            chain,
            step,
            batch_count(loader),
        )
        return name, is_new

    def iteration_of(self, iterator: object) -> Iteration | None:
        """Return the pass that an iterator makes."""
        return self._iterations.get(iterator)


def samples(batch: object) -> int:
    """Length of the first tensor in a batch, whatever it is wrapped in; 0 where there is none."""
    if isinstance(batch, Tensor):
        return batch.shape[0] if batch.dim() else 1
    parts: Any = batch
    if not isinstance(batch, list | tuple):  # as most are; the others take longer to tell
        parts = batch.values() if isinstance(batch, Mapping) else batch
        if isinstance(parts, str | bytes) or not isinstance(parts, Iterable):
            return 0
    for part in parts:
        if size := samples(part):
            return size
    return 0


def batch_count(loader: DataLoader[Any]) -> int | None:
    """Return the number of batches in a pass, or None for an iterable dataset without a length."""
    try:
        return len(loader)
    except TypeError:
        return None


def facts(label: str, loader: DataLoader[Any]) -> LoaderSeen:
    """Return how a loader is set up."""
    return LoaderSeen(
        label,
        batches=batch_count(loader),
        batch_size=loader.batch_size,
        workers=loader.num_workers,
        shuffled=isinstance(loader.sampler, RandomSampler),
        drop_last=loader.drop_last,
        order=_order(loader),
        samples=_length(loader.dataset),
        drawable=_drawable(loader),
        iterable=isinstance(loader.dataset, IterableDataset),
    )


def _length(dataset: Any) -> int | None:
    """Return the number of samples that a data set says it has, or None."""
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):
        return None


def _drawable(loader: DataLoader[Any]) -> int | None:
    """Return how many samples a sampler with weights can draw, or None for other samplers."""
    sampler = loader.sampler
    return len(sampler.weights) if isinstance(sampler, WeightedRandomSampler) else None


def _order(loader: DataLoader[Any]) -> str:
    """Who orders the samples: nobody, a sampler of torch that shuffles, or ("") the script."""
    if type(loader.batch_sampler) is not BatchSampler:
        return ""
    sampler = loader.sampler
    if isinstance(sampler, SequentialSampler):
        return "sequential"
    if isinstance(sampler, DistributedSampler):
        return "shuffled" if sampler.shuffle else "sequential"
    return "shuffled" if isinstance(sampler, _SHUFFLING) else ""


def _weakly(thing: Any) -> "weakref.ref[Any] | None":
    try:
        return weakref.ref(thing)
    except TypeError:  # a list, for example
        return None
