"""How gradients and weights are spread over the orders of magnitude."""

from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import Tensor

from holter.record.signals import GRAD_HISTOGRAM, WEIGHT_HISTOGRAM, Signal
from holter.record.signals.histograms import EXPONENTS
from holter.watching.collectors import Reading
from holter.watching.collectors.moments import AfterUpdate, Depth, GradientsReady
from holter.watching.stats import Statistics

EVERY = 16  # of the full steps: a histogram costs as much as all other statistics together


class Histograms:
    """Counts elements by powers of two, for gradients before clipping and weights afterwards."""

    emits: ClassVar[tuple[Signal, ...]] = (GRAD_HISTOGRAM, WEIGHT_HISTOGRAM)
    at: ClassVar[tuple[type, ...]] = (GradientsReady, AfterUpdate)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._stats = Statistics()
        self._updates = 0

    def read(self, moment: GradientsReady | AfterUpdate) -> Iterable[Reading]:
        """Shares of each parameter's elements."""
        if isinstance(moment, AfterUpdate) and moment.depth < self.depth:
            return []
        due = self._updates % EVERY == 0
        subject = moment.subject
        if isinstance(moment, AfterUpdate):
            self._updates += 1
            held = [parameter.detach() for parameter in subject.parameters]
            return [Reading(WEIGHT_HISTOGRAM, subject.names, self._shares(held))] if due else []
        at = [i for i, parameter in enumerate(subject.parameters) if parameter.grad is not None]
        if not due or not at:
            return []
        gradients = [
            parameter.grad for parameter in subject.parameters if parameter.grad is not None
        ]
        shares = self._shares(gradients)
        if moment.scale is not None:
            shares = _divided(shares, moment.scale)
        return [Reading(GRAD_HISTOGRAM, subject.names, shares, at)]

    def _shares(self, tensors: list[Tensor]) -> Tensor:
        counts = self._stats.histogram(tensors).to(torch.float32)
        return self._stats.shares(counts.T, tensors).T


def _divided(shares: Tensor, scale: Tensor) -> Tensor:
    """The histogram of the same elements divided by `scale`, which is nearly a power of two."""
    shift = scale.to(shares.device, torch.float32).log2().round().long().reshape(1)
    bins = torch.arange(EXPONENTS, device=shares.device).sub(shift).clamp(0, EXPONENTS - 1)
    shifted = torch.zeros_like(shares)
    shifted[:, EXPONENTS:] = shares[:, EXPONENTS:]
    return shifted.index_add_(1, bins, shares[:, :EXPONENTS])
