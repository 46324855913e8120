"""The loss and the accuracy of each pass over data that are evaluated."""

from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import Tensor

from holter.record.evaluations import owner_of
from holter.record.signals import (
    VAL_ACCURACY,
    VAL_GRAPH_FRACTION,
    VAL_LOSS,
    VAL_LOSS_OF_BATCHES,
    Signal,
)
from holter.watching.collectors import Reading
from holter.watching.collectors.elements import Total, number, total
from holter.watching.collectors.inputs import as_values
from holter.watching.collectors.loss_calls import Hits, given, share
from holter.watching.collectors.moments import Depth, Logged, StepEnds, ValidationLoss

_Key = tuple[str, str]  # loss function and data


class Validation:
    """Averages losses without a backward pass between two training steps, by element."""

    emits: ClassVar[tuple[Signal, ...]] = (
        VAL_LOSS,
        VAL_LOSS_OF_BATCHES,
        VAL_ACCURACY,
        VAL_GRAPH_FRACTION,
    )
    at: ClassVar[tuple[type, ...]] = (ValidationLoss, Logged, StepEnds)
    depth: ClassVar[Depth] = Depth.LIGHT
    wakes_at: ClassVar[tuple[type, ...]] = (ValidationLoss, Logged)

    def __init__(self) -> None:
        self._totals: dict[_Key, Total] = {}
        self._batches: dict[_Key, Total] = {}  # the means of batches, and their number
        self._hits: dict[_Key, Hits] = {}
        self._graphs: dict[_Key, list[bool]] = {}  # of each loss: whether it had one
        self._logged: Tensor | None = None
        self._owners: dict[_Key, tuple[str, ...]] = {("", ""): ("",)}

    def read(self, moment: ValidationLoss | Logged | StepEnds) -> Iterable[Reading]:
        """The mean of each loss function, at the end of the step; what was logged comes first."""
        if isinstance(moment, ValidationLoss):
            key = moment.function, moment.data
            self._add(key, moment)
            self._graphs.setdefault(key, []).append(moment.has_graph)
            self._count(key, moment)
        elif isinstance(moment, Logged):
            self._logged = moment.values.get("val_loss", self._logged)
        elif self._totals or self._logged is not None:
            return self._pass(in_eval=moment.in_eval)
        return ()

    def _add(self, key: _Key, moment: ValidationLoss) -> None:
        call = total(moment.function, moment.arguments, moment.loss, moment.samples)
        if moment.items is not None:
            items = moment.items
            count = number(items) if isinstance(items, Tensor) else items
            call = Total(number(moment.loss), count)
        elif call is None:  # the number of elements is unknown: per sample
            call = Total(number(moment.loss.detach().sum()), moment.samples)
        _increase(self._totals, key, call)
        _increase(self._batches, key, Total(call.mean, 1))

    def _count(self, key: _Key, moment: ValidationLoss) -> None:
        call = given(moment.function, moment.arguments)
        hits = call.thinned().hits() if call is not None else None
        if hits is None:
            return
        right, count = self._hits.get(key, (torch.zeros_like(hits[0]), 0))
        if right.device == hits[0].device:
            self._hits[key] = (right + hits[0], count + hits[1])

    def _pass(self, *, in_eval: bool) -> Iterable[Reading]:
        if self._logged is not None:
            yield Reading(VAL_LOSS, self._owners["", ""], self._logged.reshape(1))
            self._logged = None
        for key, losses in self._totals.items():
            owner = self._owners.setdefault(key, (owner_of(*key),))
            yield Reading(VAL_LOSS, owner, as_values(losses.mean))
            yield Reading(VAL_LOSS_OF_BATCHES, owner, as_values(self._batches[key].mean))
        for key, hits in self._hits.items():
            yield Reading(VAL_ACCURACY, self._owners[key], share([hits]))
        for key, graphs in self._graphs.items():
            # Where a backward follows in eval mode, some of these may have been trained on.
            if not (in_eval and any(graphs)):
                yield Reading(VAL_GRAPH_FRACTION, self._owners[key], [sum(graphs) / len(graphs)])
        self._totals.clear()
        self._batches.clear()
        self._hits.clear()
        self._graphs.clear()


def _increase(totals: dict[_Key, Total], key: _Key, more: Total) -> None:
    """Add to a total, unless it is on another device."""
    before = totals.get(key)
    if before is None:
        totals[key] = more
    elif before.is_with(more):
        totals[key] = before + more
