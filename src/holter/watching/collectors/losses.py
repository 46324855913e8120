"""The loss of each step, and how often backward and a closure were called for it."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from holter.record.signals import (
    BACKWARD_CALLS,
    CLOSURE_CALLS,
    LOSS,
    LOSS_FACTOR,
    LOSS_LOGGED,
    Signal,
)
from holter.watching.collectors import STEP
from holter.watching.collectors.lane import Lane, copied
from holter.watching.collectors.moments import Depth
from holter.watching.collectors.roster import Subject
from holter.watching.collectors.script_factors import (
    ScriptFactors,
    count_of,
    ends_in_factor,
    script_factors,
)
from holter.watching.frames import Chain, Frames


class Pass(NamedTuple):
    """One call of backward() in a step."""

    chain: Chain  # the place of the call
    is_fresh: bool  # its loss was computed after the call before
    divisor: float
    items: (
        Tensor | None
    )  # a count that the loss was divided by, kept so that its place is not reused


class Losses:
    """Adds up what `backward()` is called on, or averages it over the micro-batches of a step.

    Calls at one place, each on a loss that was computed since the last call, are micro-batches. The
    first call of a step is not looked at more closely, unless it is the first of all, an earlier
    step made several calls, or the loss ends in a factor: the same in every run of a script,
    however deep its steps are read.
    """

    emits: ClassVar[tuple[Signal, ...]] = (
        *(LOSS, LOSS_FACTOR, LOSS_LOGGED, BACKWARD_CALLS, CLOSURE_CALLS),
    )
    repeats: ClassVar[bool] = True

    def __init__(self) -> None:
        self._optimised: float | Tensor | None = None
        self._logged: list[Tensor] = []
        self._calls = 0
        self._frames = Frames()
        self._passes: list[Pass] = []  # of the step, those that were looked at
        self._most = 1  # calls in a step
        self._last = -1  # number of the newest node of autograd at the last call
        self._is_curious = True  # at the first step, and once a step made several calls
        self._has_several = False

    def join(self, lane: Lane) -> None:
        """Hear of backward passes, of values that are logged, and of closures."""
        self._row = lane.row
        self._losses, self._logs = lane.places(LOSS), lane.places(LOSS_LOGGED)
        self._factors = lane.places(LOSS_FACTOR)
        self._backward_calls, self._closure_calls = (
            lane.places(BACKWARD_CALLS),
            lane.places(CLOSURE_CALLS),
        )
        lane.at_backward.append(self._backward)
        lane.at_closure.append(self._closure)
        lane.at_log.append(self._log)
        lane.at_end.append(self._end)

    @property
    def single(self) -> float | None:
        """The loss of the open step, if it is one number that backward was called on once."""
        is_plain = self._calls == 1 and not (self._logged or self._passes or self._has_several)
        value = self._optimised
        return value if is_plain and isinstance(value, float) else None

    def resume(self, loss: float) -> None:
        """Take up the open step after the one backward pass that it had."""
        self._optimised, self._calls = loss, 1

    def _backward(self, roots: Sequence[Tensor], opens: bool, depth: Depth) -> None:  # noqa: ARG002
        self._calls += 1
        is_looked_at = self._is_curious or self._calls > 1 or any(map(ends_in_factor, roots))
        factors = self._look(roots) if is_looked_at else None
        for root in roots:
            value = copied(root)
            if factors is not None and factors.scale != 1:
                value = value / factors.scale
            self._optimised = value if self._optimised is None else self._optimised + value

    def _look(self, roots: Sequence[Tensor]) -> ScriptFactors | None:
        """Keep where backward() is called, and what the script multiplied the loss by."""
        node = roots[0].grad_fn if len(roots) == 1 else None
        if node is None:
            return None
        factors = script_factors(roots[0])
        is_fresh = node._sequence_nr() > self._last  # noqa: SLF001  (no public way)
        self._passes.append(
            Pass(self._frames.chain(), is_fresh, factors.divisor, count_of(roots[0]))
        )
        self._last = torch._C._autograd._get_sequence_nr() - 1  # noqa: SLF001  (of the newest)
        self._has_several |= self._calls > 1
        return factors

    def _factor(self) -> float | None:
        """Return what takes the sum of a step to the mean of its micro-batches; None if none."""
        passes, calls = self._passes, self._calls
        if calls < 2 or len(passes) < min(calls, max(calls - 1, 2)):
            return None
        self._most = max(self._most, calls)
        first = passes[0]
        if first.divisor > self._most:  # no number of batches: of labels, for example
            return None
        if first.items is not None and all(_is_same(each.items, first.items) for each in passes):
            return None  # items of the whole step: the losses of its batches add up to their mean
        others = passes[1:] if len(passes) == calls else passes
        alike = all(each.chain == first.chain and each.divisor == first.divisor for each in others)
        return first.divisor / calls if alike and all(each.is_fresh for each in others) else None

    def _closure(self, calls: int) -> None:
        self._row[self._closure_calls[STEP]] = calls

    def _log(self, values: Mapping[str, Tensor]) -> None:
        if "loss" in values:
            self._logged.append(values["loss"])

    def _end(self, subjects: Sequence[Subject]) -> None:
        row, loss = self._row, self._optimised
        row[self._backward_calls[STEP]] = self._calls
        if self._passes:
            factor = self._factor()
            self._passes.clear()
            if factor is not None and loss is not None:
                loss = loss * factor
                row[self._factors[STEP]] = factor
        for subject in subjects:
            if self._logged:
                logged = torch.stack(self._logged).mean()
                row.keep(self._logs[subject.owner], logged)
                if loss is None:
                    row.keep(self._losses[subject.owner], logged)
            if loss is not None:
                row[self._losses[subject.owner]] = loss
                row.is_on_device |= isinstance(loss, Tensor)
        self._optimised, self._calls, self._is_curious = None, 0, self._has_several
        if self._logged:
            self._logged = []


def _is_same(count: Tensor | None, other: Tensor) -> bool:
    """Whether two saved tensors are one."""
    return count is not None and count.data_ptr() == other.data_ptr()
