"""Targets that are the model's own input."""

from collections.abc import Iterable
from typing import Any, ClassVar

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
from holter.watching.collectors.roster import Roster


class Copies:
    """Remembers what each embedding was given last, and compares targets with it.

    The embedding that has as many entries as there are classes speaks of the same things as the
    targets do: so positions, types and masks are never taken for the input.
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
        self._inputs: dict[int, Tensor] = {}  # by the number of entries
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
        self._calls.know(
            (module, module.num_embeddings)
            for module in modules
            if isinstance(module, nn.Embedding)
        )
        self._calls.listen()

    def _heard(self, entries: int, _: nn.Module, arguments: Any) -> bool:
        tokens = arguments[0] if arguments and isinstance(arguments, tuple) else None
        if isinstance(tokens, Tensor):
            self._inputs[entries] = tokens
        return True


def _match(call: Given, inputs: dict[int, Tensor]) -> Hits | None:
    if call.family is not Family.CLASSES or call.is_soft:
        return None
    target = call.target
    tokens = inputs.get(call.prediction.shape[call.axis])
    if tokens is None or tokens.numel() != target.numel() or tokens.device != target.device:
        return None
    equal = tokens.reshape(-1) == target.reshape(-1)
    if call.ignored is None:
        return equal.sum(), target.numel()
    kept = target.reshape(-1) != call.ignored
    return (equal & kept).sum(), kept.sum()
