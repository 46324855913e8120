"""Norms of the weights after each update."""

from collections.abc import Iterable
from typing import ClassVar

import torch

from holter.collectors import Reading
from holter.collectors.moments import AfterUpdate, Depth
from holter.signals import WEIGHT_NORM, WEIGHT_TOTAL_NORM, Signal
from holter.stats import Statistics


class Weights:
    """The norm of each parameter, and of all together."""

    emits: ClassVar[tuple[Signal, ...]] = (WEIGHT_NORM, WEIGHT_TOTAL_NORM)
    at: ClassVar[tuple[type, ...]] = (AfterUpdate,)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._stats = Statistics()

    def read(self, moment: AfterUpdate) -> Iterable[Reading]:
        """A value for each parameter."""
        if moment.depth < self.depth:
            return
        subject = moment.subject
        norm = self._stats.norms(subject.parameters)
        yield Reading(WEIGHT_NORM, subject.names, norm)
        # In float64, for squares of large norms overflow.
        total = torch.linalg.vector_norm(norm, dtype=torch.float64).reshape(1)
        yield Reading(WEIGHT_TOTAL_NORM, subject.owner, total)
