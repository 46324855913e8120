"""Edits: parameters that the script writes to between one update and the next."""

import math
import time
import weakref
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from holter.watching.blackbox.shadow import held_by

_VERSION = attrgetter("_version")
_RARELY = 64  # updates between two comparisons of contents, unless they would take too long
_SHARE = 0.001  # of the time, for comparisons of contents
_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}  # by the size of an element


class Edits:
    """Compares parameters right after an update with the same before the next one.

    A tensor counts the writes to it, and a tensor that was replaced is elsewhere in memory: both
    are read at every step, without work for the device. Writes through `.data` are not counted.
    These are found by comparing contents, in the first steps and then ever more rarely; a parameter
    that was once edited so counts as edited at every step.
    """

    def __init__(
        self, models: Mapping[str, nn.Module], optimizers: Mapping[str, Optimizer]
    ) -> None:
        held = {id(p) for optimizer in optimizers.values() for p in held_by(optimizer)}
        held -= {id(p) for model in models.values() for p in _written_by_forward(model)}
        named = {
            id(parameter): (f"model/{label}/{name}", weakref.ref(parameter))
            for label, model in models.items()
            for name, parameter in model.named_parameters()
            if id(parameter) in held
        }
        # Shards come and go between steps.
        alone = not (torch.distributed.is_available() and torch.distributed.is_initialized())
        self._named = list(named.values()) if alone else []
        self._silent: set[str] = set()  # written to through `.data`
        self.are_known = False  # as the last update left them
        self._versions: list[int] = []
        self._places: list[int] = []  # in memory
        self.were_found = False  # so that they are looked at after each update
        self.cost = math.inf  # seconds that it takes to look at the parameters after an update
        self._contents: Tensor | None = None
        self._flags: tuple[Tensor, Any] | None = None  # on their way from a device
        self._gap, self._due = 0, 1

    def left(self, *, after: int = 1, length: float | None = None) -> None:
        """Remember the parameters as an update has left them, so many `after` the last look.

        `length` is that of a step, in seconds.
        """
        self._gap += after
        self._contents, self.are_known = None, True
        began = time.perf_counter()
        parameters = self._parameters()
        self._versions, self._places = _marks(parameters)
        # They are read again before the next update; the first time, caches are cold.
        both = 2 * (time.perf_counter() - began)
        self.cost = (
            both if math.isinf(self.cost) else 0.8 * self.cost + 0.2 * min(both, self.cost * 2)
        )
        if self._gap >= self._due and parameters:
            began = time.perf_counter()
            self._contents = _contents(parameters)
            both = 2 * (time.perf_counter() - began)  # they are read again before the next update
            wait = min(max(self._gap // 3, 1), _RARELY)
            if length and self._gap > _RARELY:
                wait = max(wait, int(both / (_SHARE * length)))
            self._due = self._gap + wait

    def found(self) -> dict[str, Tensor]:
        """Return the parameters that were written to since, by name."""
        parameters = self._parameters() if self.are_known else []
        if not parameters or len(parameters) != len(self._versions):
            return {}
        versions, places = _marks(parameters)
        if self._contents is not None or self._flags is not None:
            self._compare(parameters, versions, places)
        if not self._silent and versions == self._versions and places == self._places:
            return {}
        self.were_found = True
        return {
            name: parameter.detach()
            for place, ((name, _), parameter) in enumerate(
                zip(self._named, parameters, strict=True)
            )
            if name in self._silent
            or versions[place] != self._versions[place]
            or places[place] != self._places[place]
        }

    def _parameters(self) -> list[Tensor]:
        parameters = [reference() for _, reference in self._named]
        alive: list[Tensor] = [each for each in parameters if each is not None]
        if len(alive) < len(parameters):  # the script has let go of a model
            self._named = []
            return []
        return alive

    def _compare(self, parameters: list[Tensor], versions: list[int], places: list[int]) -> None:
        if self._contents is not None and self._flags is None:
            self._flags = _to_host(_contents(parameters).ne(self._contents))
            self._contents = None
        if self._flags is None or not (self._flags[1] is None or self._flags[1].query()):
            return
        flags, self._flags = self._flags[0].tolist(), None
        self._silent |= {
            self._named[place][0]
            for place, flag in enumerate(flags)
            if flag
            and versions[place] == self._versions[place]
            and places[place] == self._places[place]
        }


def _marks(parameters: list[Tensor]) -> tuple[list[int], list[int]]:
    """Return how often each parameter was written to, and where it is in memory."""
    return list(map(_VERSION, parameters)), list(map(Tensor.data_ptr, parameters))


def _contents(parameters: list[Tensor]) -> Tensor:
    """Return a number for each parameter that changes with its content."""
    with torch.no_grad():
        sums = [_bits(parameter.detach()).sum(dtype=torch.int64) for parameter in parameters]
        return torch.stack([each.to(sums[0].device) for each in sums])


def _bits(tensor: Tensor) -> Tensor:
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    integer = _INTEGERS.get(tensor.element_size())
    return tensor if integer is None else tensor.view(integer)


def _to_host(flags: Tensor) -> tuple[Tensor, Any]:
    """Copy flags to the host without waiting, with an event that tells when they are there."""
    if not flags.is_cuda:
        return flags.cpu(), None
    host = torch.empty_like(flags, device="cpu", pin_memory=True)
    host.copy_(flags, non_blocking=True)
    arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
    arrived.record()
    return host, arrived


def _written_by_forward(model: nn.Module) -> list[Tensor]:
    """Return the weights of embeddings that limit the norm of a row when it is read."""
    embeddings = [m for m in model.modules() if isinstance(m, nn.Embedding | nn.EmbeddingBag)]
    return [embedding.weight for embedding in embeddings if embedding.max_norm is not None]
