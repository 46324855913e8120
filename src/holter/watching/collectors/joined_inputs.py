"""Inputs of linear layers that concatenate data with features: numbers beside embeddings."""

from collections.abc import Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from holter.record.signals import INPUT_JOINED_RATIO, INPUT_JOINED_STD, Signal
from holter.watching.collectors import Reading
from holter.watching.collectors.calls import Calls, is_compiled
from holter.watching.collectors.moments import AfterUpdate, BackwardBegins, Closing, Depth, Joined
from holter.watching.collectors.naming import unwrapped
from holter.watching.collectors.roster import Roster

_WINDOWS = 3  # steps whose forward is heard
_ROWS, _COLUMNS = 8, 4  # needed to compare columns


class JoinedInputs:
    """Compares the columns of what the linear layers of a model are given, in a few steps.

    Only inputs of which a part has no gradient count: data that were not scaled like the features
    beside them. Columns of activations differ in scale for many reasons.
    """

    emits: ClassVar[tuple[Signal, ...]] = (INPUT_JOINED_STD, INPUT_JOINED_RATIO)
    at: ClassVar[tuple[type, ...]] = (Joined, AfterUpdate, BackwardBegins, Closing)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._calls: Calls[str] = Calls(self._heard)
        self._left = _WINDOWS
        self._spreads: dict[str, Tensor] = {}  # of the columns, by layer

    @property
    def spent(self) -> float:
        """Seconds inside the hook, which no moment sees."""
        return self._calls.spent

    def read(self, moment: Joined | AfterUpdate | BackwardBegins | Closing) -> Iterable[Reading]:
        """Yield the scales of the columns when the first backward of a step begins."""
        self._calls.check()
        if isinstance(moment, BackwardBegins | Closing):
            spreads, self._spreads = self._spreads, {}
            self._calls.stop()
            if not isinstance(moment, BackwardBegins) or not moment.opens_step:
                return ()
            return [reading for layer in spreads.items() for reading in _readings(*layer)]
        depth = moment.depth if isinstance(moment, Joined) else moment.next_depth
        if depth is Depth.FULL and self._left:
            self._listen(moment.roster)
        return ()

    def _listen(self, roster: Roster) -> None:
        self._left -= 1
        if any(is_compiled(model.module) for model in roster.models):
            return
        self._calls.know(
            (module, f"{model.prefix}{name}".removesuffix(".") or model.label)
            for model in roster.models
            for name, module in unwrapped(model.module).named_modules()
            if isinstance(module, nn.Linear)
        )
        self._calls.listen()

    def _heard(self, layer: str, _: nn.Module, arguments: Any) -> bool:
        given = arguments[0] if isinstance(arguments, tuple) and arguments else None
        if torch.is_grad_enabled() and isinstance(given, Tensor) and _holds_data(given):
            rows = given.detach().reshape(-1, given.shape[-1])
            if len(rows) >= _ROWS and rows.shape[1] >= _COLUMNS:
                self._spreads.setdefault(layer, rows.float().std(0))
        return True


def _holds_data(given: Tensor) -> bool:
    """Whether a tensor concatenates parts with a gradient and parts without one."""
    node = given.grad_fn
    if node is None or type(node).__name__ != "CatBackward0":
        return False
    return any(operand is None for operand, _ in node.next_functions)


def _readings(layer: str, spread: Tensor) -> tuple[Reading, Reading]:
    largest, owner = spread.max().reshape(1), (layer,)
    ratio = largest / spread.median()
    return Reading(INPUT_JOINED_STD, owner, largest), Reading(INPUT_JOINED_RATIO, owner, ratio)
