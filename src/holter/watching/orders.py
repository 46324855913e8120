"""The order in which loaders deliver their samples, pass by pass."""

import zlib
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from holter.record.events import PassOrder
from holter.watching.collectors.batches import ANY, Batches
from holter.watching.collectors.outputs import readable

_BATCHES = 32  # of a pass that are looked at: two shuffles agree in none of them
_PASSES = 16  # of a run
_TENSORS = 8  # of a batch
_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


@dataclass(slots=True)
class _Pass:
    """Fingerprints of the first batches of a pass."""

    step: int
    inputs: list[float] = field(default_factory=list)
    labels: list[float] = field(default_factory=list)


class Orders:
    """Makes one number of the first batches of each pass; of batches on the host only.

    Augmented inputs differ in every pass, therefore labels have a number of their own.
    """

    def __init__(self) -> None:
        self._batches = Batches()
        self._open: dict[str, _Pass] = {}
        self._told = 0

    def begin(self, loader: str, step: int) -> None:
        """A pass over a loader begins before this step."""
        if self._told < _PASSES:
            self._open[loader] = _Pass(step)

    def see(self, loader: str, batch: object, step: int, length: int | None) -> PassOrder | None:
        """Take a training batch; return the order of the pass once enough of it is known."""
        current = self._open.get(loader)
        if current is None:
            return None
        tensors = list(_tensors(batch, 2))[:_TENSORS]
        if not tensors or not all(tensor.is_cpu for tensor in tensors):
            self._open.pop(loader)
            return None
        current.inputs.append(float(self._batches.fingerprint(tensors[0])))
        if len(tensors) > 1 and tensors[-1].dtype in _INTEGERS:
            current.labels.append(float(self._batches.fingerprint(tensors[-1])))
        if len(current.inputs) < min(_BATCHES, length or _BATCHES):
            return None
        self._open.pop(loader)
        self._told += 1
        return PassOrder(
            loader,
            batches=len(current.inputs),
            steps=step - current.step,
            inputs=_number(current.inputs),
            labels=_number(current.labels),
        )


def _number(prints: list[float]) -> int | None:
    """One number for all of them, in their order; None where they do not differ."""
    return zlib.crc32(array("d", prints)) if len(set(prints)) > 1 else None


def _tensors(batch: object, depth: int) -> Iterator[Tensor]:
    """The tensors of a batch that have numbers to read."""
    if isinstance(batch, Tensor):
        tensor = readable(batch, kinds=ANY)
        if tensor is not None:
            yield tensor
    elif depth and isinstance(batch, Mapping | list | tuple):
        for part in batch.values() if isinstance(batch, Mapping) else batch:
            yield from _tensors(part, depth - 1)
