"""The weights at each update: norms, extremes, rows that are identical or nearly so."""

import weakref
from collections.abc import Iterable, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from holter.record.signals import (
    WEIGHT_ABSMAX,
    WEIGHT_NORM,
    WEIGHT_ROW_COHERENCE,
    WEIGHT_TOTAL_NORM,
    WEIGHT_TWIN_FRACTION,
    Signal,
)
from holter.watching.collectors import Reading
from holter.watching.collectors.moments import AfterUpdate, BeforeUpdate, Depth
from holter.watching.collectors.outputs import gathered
from holter.watching.collectors.roster import Roster
from holter.watching.stats import Statistics

_ROWS = 512  # of a weight that are compared with its first, spread over it
_COLUMNS = 256  # of a weight that tell how alike its rows are, spread over it
_FEWEST_ROWS = 4  # of which two or three are alike by chance
_SCREEN = 8  # elements of each row that are compared first, where that is known at once
_EVERY = 4  # times that an optimizer's weights are read whole: rows that part do not meet again


class Weights:
    """Norm and largest magnitude of each parameter, the norm of all together, and equal rows."""

    emits: ClassVar[tuple[Signal, ...]] = (
        WEIGHT_NORM,
        WEIGHT_ABSMAX,
        WEIGHT_TOTAL_NORM,
        WEIGHT_TWIN_FRACTION,
        WEIGHT_ROW_COHERENCE,
    )
    at: ClassVar[tuple[type, ...]] = (BeforeUpdate, AfterUpdate)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._stats = Statistics()
        self._reads: dict[int, int] = {}  # by the index of the optimizer
        self._roster: weakref.ref[Roster] | None = None
        self._without_units: set[int] = set()  # identities of parameters
        self._gates: dict[int, int] = {}  # of recurrent weights, by the same

    def read(self, moment: BeforeUpdate | AfterUpdate) -> Iterable[Reading]:
        """A value for each parameter."""
        if isinstance(moment, BeforeUpdate):
            if self._reads.get(moment.subject.index, 0) % _EVERY == 0:
                yield from self._coherence(moment)
            return
        if moment.depth < self.depth:
            return
        subject = moment.subject
        norm, absmax = self._stats.magnitudes(subject.parameters, like=subject)
        yield Reading(WEIGHT_NORM, subject.names, norm)
        yield Reading(WEIGHT_ABSMAX, subject.names, absmax)
        # In float64, for squares of large norms overflow.
        total = torch.linalg.vector_norm(norm, dtype=torch.float64).reshape(1)
        yield Reading(WEIGHT_TOTAL_NORM, subject.owner, total)
        reads = self._reads.get(subject.index, 0)
        self._reads[subject.index] = reads + 1
        if reads % _EVERY == 0:
            yield from self._twins(moment)

    def _first_gate(self, weight: Tensor) -> Tensor:
        """Return the rows that have to differ; those of one gate, of a recurrent layer."""
        return weight[: weight.shape[0] // self._gates.get(id(weight), 1)]

    def _units(self, moment: BeforeUpdate | AfterUpdate) -> dict[int, Tensor]:
        """Return the weights of units that ought to differ, by place."""
        if self._roster is None or self._roster() is not moment.roster:
            self._roster = weakref.ref(moment.roster)
            self._without_units = _without_units(moment.roster)
            self._gates = _gates(moment.roster)
        return {
            place: self._first_gate(parameter)
            for place, parameter in enumerate(moment.subject.parameters)
            if type(parameter)
            in (Tensor, nn.Parameter)  # parts of one that is spread would be gathered
            and parameter.dim() > 1
            and parameter.shape[0] > 1
            and parameter.numel() > parameter.shape[0]
            and id(parameter) not in self._without_units
        }

    def _twins(self, moment: AfterUpdate) -> Iterable[Reading]:
        if units := self._units(moment):
            values = _twin_fractions(list(units.values()))
            yield Reading(WEIGHT_TWIN_FRACTION, moment.subject.names, values, list(units))

    def _coherence(self, moment: BeforeUpdate) -> Iterable[Reading]:
        units = {
            place: rows
            for place, rows in self._units(moment).items()
            if rows.shape[0] >= _FEWEST_ROWS and rows.is_floating_point()
        }
        if units:
            values = _coherences(list(units.values()))
            yield Reading(WEIGHT_ROW_COHERENCE, moment.subject.names, values, list(units))


def _gates(roster: Roster) -> dict[int, int]:
    """How many gates or projections are stacked in the rows of a weight, where there are some."""
    attention = {
        id(module.in_proj_weight): 3
        for model in roster.models
        for module in model.module.modules()
        if isinstance(module, nn.MultiheadAttention) and module.in_proj_weight is not None
    }
    return attention | {
        id(parameter): parameter.shape[0] // module.hidden_size
        for model in roster.models
        for module in model.module.modules()
        if isinstance(module, nn.RNNBase | nn.RNNCellBase)
        for name, parameter in module.named_parameters(recurse=False)
        if name.startswith(("weight_ih", "weight_hh"))
    }


def _without_units(roster: Roster) -> set[int]:
    """Parameters whose rows are not the weights of units that ought to differ."""
    return {
        id(parameter)
        for model in roster.models
        for module in model.module.modules()
        if isinstance(module, nn.Embedding | nn.EmbeddingBag) or "Norm" in type(module).__name__
        for parameter in module.parameters(recurse=False)
    }


@torch.no_grad()
def _twin_fractions(weights: Sequence[Tensor]) -> Tensor:
    """The share of each weight's other rows that equal its first."""
    shares = []
    for weight in weights:
        rows = weight.detach()[:: -(-weight.shape[0] // _ROWS)]
        flat = rows.reshape(rows.shape[0], -1)
        if flat.device.type == "cpu" and not _equal_rows(flat[:, :_SCREEN]).any():
            shares.append(torch.zeros(()))
        else:
            shares.append(_equal_rows(flat).float().mean())
    return gathered([share.reshape(1) for share in shares])


@torch.no_grad()
def _coherences(weights: Sequence[Tensor]) -> Tensor:
    """The squared norm of each weight's mean row over that of a row; NaN where all are zero."""
    values = []
    for weight in weights:
        rows = weight.detach()[:: -(-weight.shape[0] // _ROWS)]
        flat = rows.reshape(rows.shape[0], -1)
        flat = flat[:, :: -(-flat.shape[1] // _COLUMNS)].float()
        whole = torch.linalg.vector_norm(flat).square()
        values.append(flat.mean(0).square().sum() * flat.shape[0] / whole)
    return gathered([value.reshape(1) for value in values])


def _equal_rows(rows: Tensor) -> Tensor:
    return (rows[1:] == rows[:1]).all(dim=1)
