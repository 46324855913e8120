"""Gradients of every parameter: norm, largest magnitude, non-finite and zero elements."""

from collections.abc import Iterable
from typing import ClassVar

import torch

from holter.record.signals import (
    GRAD_ABSMAX,
    GRAD_NONFINITE,
    GRAD_NORM,
    GRAD_TOTAL_NORM,
    GRAD_ZERO_FRACTION,
    Signal,
)
from holter.watching.collectors import Reading
from holter.watching.collectors.moments import Depth, GradientsReady
from holter.watching.stats import Stat, Statistics
from holter.watching.stats.shards import local


class Gradients:
    """One fused pass over all gradients, before they are clipped."""

    emits: ClassVar[tuple[Signal, ...]] = (
        GRAD_NORM,
        GRAD_ABSMAX,
        GRAD_NONFINITE,
        GRAD_ZERO_FRACTION,
        GRAD_TOTAL_NORM,
    )
    at: ClassVar[tuple[type, ...]] = (GradientsReady,)
    depth: ClassVar[Depth] = Depth.REGULAR
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._stats = Statistics()

    def read(self, moment: GradientsReady) -> Iterable[Reading]:
        """A value for each parameter that has a gradient."""
        subject = moment.subject
        gradients = [parameter.grad for parameter in subject.parameters]
        there = local([gradient for gradient in gradients if gradient is not None])
        places = [i for i, gradient in enumerate(gradients) if gradient is not None]
        # Of a small parameter a shard may be empty.
        if not all(gradient.numel() for gradient in there):
            places = [i for i, gradient in zip(places, there, strict=True) if gradient.numel()]
            there = [gradient for gradient in there if gradient.numel()]
        if not there:
            return
        at = places if len(there) < len(gradients) else None
        summary = self._stats.summarise(there)
        norm, absmax = summary[:, Stat.NORM], summary[:, Stat.ABSMAX]
        if moment.scale is not None:
            norm, absmax = norm / moment.scale, absmax / moment.scale
        yield Reading(GRAD_NORM, subject.names, norm, at)
        yield Reading(GRAD_ABSMAX, subject.names, absmax, at)
        yield Reading(GRAD_NONFINITE, subject.names, summary[:, Stat.NONFINITE], at)
        yield Reading(
            GRAD_ZERO_FRACTION, subject.names, self._stats.shares(summary[:, Stat.ZEROS], there), at
        )
        held = sum(place < subject.held for place in places)
        if held:
            # In float64, for squares of large norms overflow.
            total = torch.linalg.vector_norm(norm[:held], dtype=torch.float64).reshape(1)
            yield Reading(GRAD_TOTAL_NORM, subject.owner, total)
