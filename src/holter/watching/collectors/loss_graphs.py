"""The form of the loss, read from its autograd graph before backward frees it."""

import weakref
from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import Tensor

from holter.record.signals import (
    GRAPH_DEPTH,
    GRAPH_LEAVES,
    GRAPH_LOOSE_LEAVES,
    GRAPH_OPERATIONS,
    LOSS_BATCH_SOFTMAX,
    LOSS_CONSTANT_PART,
    LOSS_DIVISOR,
    LOSS_LARGEST_OUTPUT,
    LOSS_LOG_ARGUMENT,
    LOSS_PAIRED_SPREAD,
    LOSS_RATIO_CANCELLED,
    LOSS_ROOT_ARGUMENT,
    LOSS_TERM_GRADIENT,
    MODEL_ELEMENTS,
    Signal,
)
from holter.watching.collectors import STEP, Reading
from holter.watching.collectors.calls import Calls, is_compiled
from holter.watching.collectors.graphs.choices import compares_largest
from holter.watching.collectors.graphs.constants import constant_part
from holter.watching.collectors.graphs.contributions import Contributions
from holter.watching.collectors.graphs.outputs import keep
from holter.watching.collectors.graphs.pairs import paired_spread
from holter.watching.collectors.graphs.ratios import cancelled_ratio
from holter.watching.collectors.graphs.stretch import (
    Singular,
    extent,
    smallest_arguments,
    softmax_over_samples,
    stretch,
)
from holter.watching.collectors.graphs.terms import terms
from holter.watching.collectors.moments import (
    AfterUpdate,
    BackwardBegins,
    Closing,
    Depth,
    Joined,
    StepEnds,
)
from holter.watching.collectors.roster import Roster

_OF_THE_GRAPH = (GRAPH_OPERATIONS, GRAPH_DEPTH, GRAPH_LEAVES, GRAPH_LOOSE_LEAVES)
_WALKS = 4  # steps on which the whole graph is walked
_ARGUMENTS = {
    Singular.LOGARITHM: LOSS_LOG_ARGUMENT,
    Singular.ROOT: LOSS_ROOT_ARGUMENT,
    Singular.QUOTIENT: LOSS_DIVISOR,
}


class LossGraphs:
    """Marks in the graph where models end, and reads what lies between there and the loss.

    What models return is attached to the graph itself and goes with it; see `graphs.outputs`.
    """

    emits: ClassVar[tuple[Signal, ...]] = (
        LOSS_BATCH_SOFTMAX,
        LOSS_LARGEST_OUTPUT,
        LOSS_LOG_ARGUMENT,
        LOSS_ROOT_ARGUMENT,
        LOSS_DIVISOR,
        *_OF_THE_GRAPH,
        LOSS_TERM_GRADIENT,
        LOSS_PAIRED_SPREAD,
        LOSS_RATIO_CANCELLED,
        LOSS_CONSTANT_PART,
        MODEL_ELEMENTS,
    )
    at: ClassVar[tuple[type, ...]] = (
        Joined,
        BackwardBegins,
        AfterUpdate,
        StepEnds,
        Closing,
    )
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self.declined: list[str] = []
        self._models: Calls[None] = Calls(_wants_output, self._returned)
        self._elements = 0  # that modules have returned in this step
        self._walks = _WALKS
        self._seen = self._next = 0  # steps that were read, and the next whose terms are
        self._contributions: Contributions | None = None
        self._terms: dict[tuple[str, ...], tuple[str, ...]] = {}  # owners are the same tuple
        self._readings: list[Reading] = []
        self._roster: weakref.ref[Roster] | None = None  # weak: the script may be done with it

    @property
    def spent(self) -> float:
        """Seconds inside the hooks, which no moment sees."""
        return self._models.spent

    def read(
        self, moment: Joined | BackwardBegins | AfterUpdate | StepEnds | Closing
    ) -> Iterable[Reading]:
        """The graph of the first backward of a step, at the end of the step."""
        if isinstance(moment, BackwardBegins):
            self._models.check()
            if moment.opens_step and moment.whole:
                self._take(moment.roots, moment.roster)
        elif isinstance(moment, StepEnds):
            yield from self._readings
            yield from self._shares()
            self._readings = []
        else:
            self._listen(moment)

    def _shares(self) -> Iterable[Reading]:
        """The share of each term in the gradient, if their backward is over."""
        contributions, self._contributions = self._contributions, None
        shares = None if contributions is None else contributions.take()
        if contributions is not None and shares is not None:
            owners = self._terms.setdefault(contributions.names, contributions.names)
            yield Reading(LOSS_TERM_GRADIENT, owners, shares)

    def _listen(self, moment: Joined | AfterUpdate | Closing) -> None:
        """Hear what models return in the steps that are read whole."""
        self._models.stop()
        self._elements = 0
        if isinstance(moment, Closing):
            return
        depth = moment.depth if isinstance(moment, Joined) else moment.next_depth
        models = [model.module for model in moment.roster.models]
        if depth < self.depth or any(map(is_compiled, models)):
            return
        if self._roster is None or moment.roster is not self._roster():
            self._roster = weakref.ref(moment.roster)
            self._models.know((module, None) for model in models for module in model.modules())
        self._models.listen()

    def _returned(
        self, _: None, __: torch.nn.Module, arguments: tuple[object, object], output: object
    ) -> None:
        self._elements += keep(arguments, output)

    @torch.no_grad()
    def _take(self, roots: tuple[Tensor, ...], roster: Roster) -> None:
        places, outputs = stretch(roots)
        self._readings = [
            Reading(_ARGUMENTS[operation], STEP, least.reshape(1))
            for operation, least in smallest_arguments(places).items()
        ]
        if self._elements:
            self._readings.append(Reading(MODEL_ELEMENTS, STEP, [self._elements]))
        spread = paired_spread(places)
        if spread is not None:
            self._readings.append(Reading(LOSS_PAIRED_SPREAD, STEP, spread.reshape(1)))
        ratio = cancelled_ratio(places)
        if ratio is not None:
            self._readings.append(Reading(LOSS_RATIO_CANCELLED, STEP, ratio.reshape(1)))
        is_largest = compares_largest(places)
        if is_largest is not None:
            self._readings.append(Reading(LOSS_LARGEST_OUTPUT, STEP, [float(is_largest)]))
        is_over_samples = softmax_over_samples(roots)
        if is_over_samples is not None:
            self._readings.append(Reading(LOSS_BATCH_SOFTMAX, STEP, [float(is_over_samples)]))
        if self._seen >= self._next and len(roots) == 1:
            self._next = self._seen + 1 + self._seen // 4
            self._contributions = Contributions(terms(roots[0]), outputs)
            constant = constant_part(roots[0])
            if constant is not None:
                self._readings.append(Reading(LOSS_CONSTANT_PART, STEP, constant.reshape(1)))
        self._seen += 1
        if self._walks:
            self._walks -= 1
            graph = extent(roots)
            if graph is not None:
                known = {id(parameter) for parameter in roster.parameters}
                loose = sum(id(tensor) not in known for tensor in graph.leaves)
                sizes = (graph.operations, graph.depth, len(graph.leaves), loose)
                self._readings += [
                    Reading(signal, STEP, [size])
                    for signal, size in zip(_OF_THE_GRAPH, sizes, strict=True)
                ]


def _wants_output(*_: object) -> bool:
    return False
