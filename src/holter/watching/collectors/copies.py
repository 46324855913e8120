"""Targets that are the model's own input."""

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from holter.record.signals import TARGET_INPUT_MATCH, Signal
from holter.watching.collectors import Reading
from holter.watching.collectors.calls import Calls, is_compiled
from holter.watching.collectors.loss_calls import (
    Family,
    Given,
    Hits,
    Measurements,
    Owners,
    given,
    share,
)
from holter.watching.collectors.moments import (
    AfterUpdate,
    BackwardBegins,
    Closing,
    Depth,
    Joined,
    LossComputed,
    StepEnds,
)
from holter.watching.collectors.outputs import readable
from holter.watching.collectors.roster import Roster

_MODEL = 0  # the key of a model; that of an embedding is the number of its entries
_PARTS = 16  # parts of an input that are compared with the targets
_ELEMENTS = 1 << 22  # of all these parts together
_CALLS = 512  # of one embedding in a step, as a decoder makes that reads a token at a time


class Copies:
    """Remembers what each embedding and model was given last, and compares targets with it.

    The embedding that has as many entries as there are classes speaks of the same things as the
    targets do: so positions, types and masks are never taken for the input. Numbers are compared
    with parts of the series that the model is given: some of the variables, or the last positions.
    The whole of it is the target of an autoencoder. A decoder that reads one token at a time is
    given a sequence in many calls.
    """

    emits: ClassVar[tuple[Signal, ...]] = (TARGET_INPUT_MATCH,)
    at: ClassVar[tuple[type, ...]] = (
        Joined,
        AfterUpdate,
        LossComputed,
        BackwardBegins,
        StepEnds,
        Closing,
    )
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self.declined: list[str] = []
        self._calls: Calls[int] = Calls(self._heard)
        self._inputs: dict[int, list[Tensor]] = {}  # of each call, by the key of the module
        self._matches: Measurements[Hits] = Measurements()
        self._owners = Owners()

    @property
    def spent(self) -> float:
        """Seconds inside the hook, which no moment sees."""
        return self._calls.spent

    def read(self, moment: Any) -> Iterable[Reading]:
        """The share of each loss function, at the end of the step."""
        if isinstance(moment, LossComputed):
            call = given(moment.function, moment.arguments) if self._inputs else None
            match = _match(call, self._inputs) if call is not None else None
            if call is not None and match is not None:
                self._matches.add(moment.function, call.target.device, match)
        elif isinstance(moment, StepEnds):
            for function, matches in self._matches.take():
                yield Reading(TARGET_INPUT_MATCH, self._owners[function], share(matches))
        elif isinstance(moment, Joined | AfterUpdate):
            self._matches.settle()
            self._inputs.clear()
            depth = moment.depth if isinstance(moment, Joined) else moment.next_depth
            self._listen(moment.roster, depth)
        elif isinstance(moment, Closing) or moment.opens_step:
            self._calls.stop()
            self._calls.check()
            self._matches.settle()
            self._inputs.clear()

    def _listen(self, roster: Roster, depth: Depth) -> None:
        models = [model.module for model in roster.models]
        if depth is not self.depth or any(is_compiled(model) for model in models):
            self._calls.stop()
            return
        modules = [module for model in models for module in model.modules()]
        embeddings = [
            (module, module.num_embeddings)
            for module in modules
            if isinstance(module, nn.Embedding)
        ]
        self._calls.know([*((model, _MODEL) for model in models), *embeddings])
        self._calls.listen()

    def _heard(self, key: int, _: nn.Module, arguments: Any) -> bool:
        if key == _MODEL:
            return self._given_series(arguments)
        tokens = arguments[0] if arguments and isinstance(arguments, tuple) else None
        if isinstance(tokens, Tensor):
            before = self._inputs.get(key, [])
            is_next = bool(before) and tokens.dim() == 1 and before[0].shape == tokens.shape
            self._inputs[key] = [*before, tokens] if is_next and len(before) < _CALLS else [tokens]
        return True

    def _given_series(self, arguments: Any) -> bool:
        """Keep the series that a model is given; whether it was given anything."""
        values = arguments.values() if isinstance(arguments, dict) else arguments
        for value in values if torch.is_grad_enabled() else ():
            if isinstance(value, Tensor) and value.dim() == 3 and value.is_floating_point():
                if value.grad_fn is None and readable(value) is not None:
                    self._inputs[_MODEL] = [value.detach()]
                break
        return bool(arguments)


def _match(call: Given, inputs: dict[int, list[Tensor]]) -> Hits | None:
    if call.family is Family.NUMBERS:
        series = inputs.get(_MODEL)
        return None if series is None else _match_of_parts(call.target, series[-1])
    if call.family is not Family.CLASSES or call.is_soft:
        return None
    target, calls = call.target, inputs.get(call.prediction.shape[call.axis])
    if calls is None:
        return None
    tokens = calls[0] if len(calls) == 1 else _sequence(calls, target)
    if tokens.numel() != target.numel() or tokens.device != target.device:
        return None
    equal = tokens.reshape(-1) == target.reshape(-1)
    if call.ignored is None:
        return equal.sum(), target.numel()
    kept = target.reshape(-1) != call.ignored
    return (equal & kept).sum(), kept.sum()


def _sequence(calls: list[Tensor], target: Tensor) -> Tensor:
    """Return the tokens of many calls as one sequence, with time where the targets have it."""
    is_time_first = target.dim() > 1 and len(target) == len(calls) != len(calls[0])
    return torch.stack(calls, 0 if is_time_first else 1)


def _match_of_parts(target: Tensor, series: Tensor) -> Hits | None:
    """The targets that equal the part of a series that is most like them."""
    if target.device != series.device:
        return None
    parts = [(each, wanted) for each, wanted in _parts(target, series) if each.numel()]
    if not parts or len(parts) * target.numel() > _ELEMENTS:
        return None
    equal = torch.stack([(each == wanted).sum() for each, wanted in parts[:_PARTS]]).max()
    return equal * (target.amax() != target.amin()), target.numel()  # constants tell nothing


def _parts(target: Tensor, series: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The parts of a series that may be the targets, with the targets in their shape.

    The variables may lie on its last axis or, as convolutions want it, on the one before.
    """
    for last in (True, False):
        given = series if last else series.transpose(1, 2)
        samples, length, width = given.shape
        for wanted in _layouts(target, samples, length, last=last):
            positions, variables = wanted.shape[1:]
            if positions > length or variables > width or wanted.shape == given.shape:
                continue
            late = given[:, length - positions :]
            for first in range(width - variables + 1):
                yield late[..., first : first + variables], wanted


def _layouts(target: Tensor, samples: int, length: int, *, last: bool) -> Iterator[Tensor]:
    """The targets as samples, positions and variables; which axis is which may be open."""
    if target.dim() == 3 and len(target) == samples:
        yield target if last else target.transpose(1, 2)
    elif target.numel() == samples * length:
        yield target.reshape(samples, length, 1)
    elif target.dim() == 2 and len(target) == samples:
        yield target.unsqueeze(2)
        if target.shape[1] > 1:
            yield target.unsqueeze(1)
    elif target.dim() == 1 and len(target) == samples:
        yield target.reshape(samples, 1, 1)
