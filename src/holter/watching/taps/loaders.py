"""Taps on data loaders: the passes over them, and the batches they deliver."""

import time
from typing import Any, Protocol

from torch.utils.data import DataLoader, dataloader

from holter.watching.tap import Call, Tap


class LoaderListener(Protocol):
    """Hears of data loaders."""

    def loader_begins(self, loader: DataLoader[Any], iterator: object) -> None:
        """A script began to iterate over a loader."""

    def batch_fetched(self, iterator: object, batch: object, waited: float) -> None:
        """A loader's iterator delivered a batch."""


def tap_loaders(listener: LoaderListener) -> list[Tap]:
    """Tap `DataLoader` and its iterators."""

    def iterate(original: Call) -> Call:
        def begun(self: DataLoader[Any]) -> Any:
            iterator = original(self)
            listener.loader_begins(self, iterator)
            return iterator

        return begun

    def fetch(original: Call) -> Call:
        def fetched(self: Any) -> Any:
            began = time.perf_counter()
            batch = original(self)
            listener.batch_fetched(self, batch, time.perf_counter() - began)
            return batch

        return fetched

    iterator = dataloader._BaseDataLoaderIter  # noqa: SLF001  (every loader's iterator)
    return [Tap(DataLoader, "__iter__", iterate), Tap(iterator, "__next__", fetch)]
