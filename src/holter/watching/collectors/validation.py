"""The loss and the accuracy of each pass over validation batches."""

from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import Tensor

from holter.record.signals import VAL_ACCURACY, VAL_GRAPH_FRACTION, VAL_LOSS, Signal
from holter.watching.collectors import Reading
from holter.watching.collectors.loss_calls import Hits, given, share
from holter.watching.collectors.moments import Depth, Logged, StepEnds, ValidationLoss


class Validation:
    """Averages validation losses between two training steps, by loss function and batch size."""

    emits: ClassVar[tuple[Signal, ...]] = (VAL_LOSS, VAL_ACCURACY, VAL_GRAPH_FRACTION)
    at: ClassVar[tuple[type, ...]] = (ValidationLoss, Logged, StepEnds)
    depth: ClassVar[Depth] = Depth.LIGHT
    wakes_at: ClassVar[tuple[type, ...]] = (ValidationLoss, Logged)

    def __init__(self) -> None:
        self._sums: dict[str, tuple[Tensor, int]] = {}
        self._hits: dict[str, Hits] = {}
        self._graphs: dict[str, list[bool]] = {}  # of each loss: whether it had one
        self._logged: Tensor | None = None
        self._owners: dict[str, tuple[str, ...]] = {"": ("",)}

    def read(self, moment: ValidationLoss | Logged | StepEnds) -> Iterable[Reading]:
        """The mean of each loss function, at the end of the step; what was logged comes first."""
        if isinstance(moment, ValidationLoss):
            loss = moment.loss.detach().to(torch.float32) * moment.samples
            total, samples = self._sums.get(moment.function, (0.0, 0))
            self._sums[moment.function] = (total + loss, samples + moment.samples)
            self._graphs.setdefault(moment.function, []).append(moment.has_graph)
            self._count(moment)
        elif isinstance(moment, Logged):
            self._logged = moment.values.get("val_loss", self._logged)
        elif self._sums or self._logged is not None:
            return self._pass(in_eval=moment.in_eval)
        return ()

    def _count(self, moment: ValidationLoss) -> None:
        call = given(moment.function, moment.arguments)
        hits = call.thinned().hits() if call is not None else None
        if hits is None:
            return
        right, total = self._hits.get(moment.function, (torch.zeros_like(hits[0]), 0))
        if right.device == hits[0].device:
            self._hits[moment.function] = (right + hits[0], total + hits[1])

    def _pass(self, *, in_eval: bool) -> Iterable[Reading]:
        if self._logged is not None:
            yield Reading(VAL_LOSS, self._owners[""], self._logged.reshape(1))
            self._logged = None
        for function, (total, samples) in self._sums.items():
            owner = self._owners.setdefault(function, (function,))
            yield Reading(VAL_LOSS, owner, (total / samples).reshape(1))
        for function, hits in self._hits.items():
            yield Reading(VAL_ACCURACY, self._owners[function], share([hits]))
        for function, graphs in self._graphs.items():
            # Where a backward follows in eval mode, some of these may have been trained on.
            if not (in_eval and any(graphs)):
                value = [sum(graphs) / len(graphs)]
                yield Reading(VAL_GRAPH_FRACTION, self._owners[function], value)
        self._sums.clear()
        self._hits.clear()
        self._graphs.clear()
