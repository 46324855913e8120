"""Gradients of every parameter: norm, largest magnitude, non-finite and zero elements."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np
import torch

from holter.record.format import ABSENT, Floats
from holter.record.signals import (
    GRAD_ABSMAX,
    GRAD_NONFINITE,
    GRAD_NORM,
    GRAD_TOTAL_NORM,
    GRAD_ZERO_FRACTION,
    Signal,
)
from holter.watching.collectors import Reading
from holter.watching.collectors.lane import Lane
from holter.watching.collectors.moments import Depth, GradientsReady
from holter.watching.collectors.roster import Roster, Subject
from holter.watching.stats import Stat, Statistics
from holter.watching.stats.shards import local

_PATTERNS = 16  # of parameters with a gradient that light steps tell apart
_OF_SUMMARY = (
    (GRAD_NORM, Stat.NORM),
    (GRAD_ABSMAX, Stat.ABSMAX),
    (GRAD_NONFINITE, Stat.NONFINITE),
    (GRAD_ZERO_FRACTION, Stat.ZEROS),
)


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
        self._known: dict[tuple[int, ...], _Norms] = {}  # by which parameters have gradients
        self._is_one_launch = False  # a summary of all gradients

    def join(self, lane: Lane) -> None:
        """Read light steps as well where that is one launch: on a GPU."""
        self._lane, self._total = lane, lane.places(GRAD_TOTAL_NORM)
        lane.at_roster.append(self._follow)

    def _follow(self, roster: Roster) -> None:
        self._known.clear()
        self._lane.at_dense[:] = [hear for hear in self._lane.at_dense if hear != self._read_light]
        self._is_one_launch = on_gpu(roster)
        if self._is_one_launch:
            self._lane.at_dense.append(self._read_light)

    def _read_light(self, subject: Subject) -> None:
        self._leave(subject)

    def _leave(self, subject: Subject) -> bool:
        """Leave one summary of all gradients on the device; what follows from it can wait.

        Returns whether that could be done.
        """
        gradients = [parameter.grad for parameter in subject.parameters]
        there = local([gradient for gradient in gradients if gradient is not None])
        places = (subject.index, *(i for i, g in enumerate(gradients) if g is not None))
        norms = self._known.get(places)
        if norms is None:
            if len(self._known) >= _PATTERNS or not all(gradient.numel() for gradient in there):
                return False
            sizes = [gradient.numel() for gradient in there]
            norms = _Norms(subject, places[1:], sizes, self._total[subject.owner])
            self._known[places] = norms
        if there:
            self._lane.row.keep_wide(norms, self._stats.summarise(there, like=norms))
        return True

    def read(self, moment: GradientsReady) -> Iterable[Reading]:
        """A value for each parameter that has a gradient."""
        subject = moment.subject
        if self._is_one_launch and moment.scale is None and self._leave(subject):
            return
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


class _Norms:
    """Makes the signals of some gradients from their summary, on the host."""

    stream = GRAD_NORM.stream

    def __init__(
        self, subject: Subject, places: Sequence[int], sizes: Sequence[int], total: int
    ) -> None:
        self.layout: Sequence[tuple[str, tuple[str, ...]]] = [
            (signal.name, subject.names) for signal, _ in _OF_SUMMARY
        ]
        self._owners, self._places, self._total = len(subject.names), list(places), total
        self._held = sum(place < subject.held for place in places)
        self._sizes = np.array(sizes, np.float32)

    def values(self, row: list[float], read: Floats) -> Floats:
        """Return the values of all parameters, signal by signal; the total norm goes to the row."""
        summary = read.reshape(len(self._places), -1)
        full = np.full((len(_OF_SUMMARY), self._owners), ABSENT)
        for place, (_, column) in enumerate(_OF_SUMMARY):
            values = summary[:, column]
            full[place, self._places] = values / self._sizes if column is Stat.ZEROS else values
        if self._held:
            row[self._total] = float(np.linalg.norm(summary[: self._held, 0].astype(np.float64)))
        return full.reshape(-1)


def on_gpu(roster: Roster) -> bool:
    """Whether all parameters are where one launch reads many of them."""
    return bool(roster.parameters) and all(parameter.is_cuda for parameter in roster.parameters)
