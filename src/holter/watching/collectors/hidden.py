"""What is not finite and is replaced before anybody sees it."""

from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import Tensor

from holter.record.signals import HIDDEN_NONFINITE, Signal
from holter.watching.collectors import STEP, Reading
from holter.watching.collectors.moments import BackwardBegins, Depth, NonfiniteReplaced, StepEnds
from holter.watching.collectors.outputs import readable


class Hidden:
    """Counts what `torch.nan_to_num` replaces, in a forward pass or in gradients before a step.

    What has no graph behind it is data: missing values may be marked by NaN and cleaned on purpose.
    """

    emits: ClassVar[tuple[Signal, ...]] = (HIDDEN_NONFINITE,)
    at: ClassVar[tuple[type, ...]] = (NonfiniteReplaced, BackwardBegins, StepEnds)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = (NonfiniteReplaced,)

    def __init__(self) -> None:
        self._gradients: frozenset[int] | None = None  # of the open step, once one is asked for
        self._count: Tensor | None = None  # of the open step
        self._ahead: Tensor | None = None  # of the one whose forward this is

    def read(self, moment: NonfiniteReplaced | BackwardBegins | StepEnds) -> Iterable[Reading]:
        """The count of the step, at its end."""
        if isinstance(moment, NonfiniteReplaced):
            tensor = readable(moment.tensor)
            if tensor is None or not (moment.tensor.requires_grad or self._is_gradient(moment)):
                return ()
            count = tensor.numel() - torch.isfinite(tensor).sum()
            if moment.ahead:
                self._ahead = _sum(self._ahead, count)
            else:
                self._count = _sum(self._count, count)
        elif isinstance(moment, StepEnds):
            self._gradients = None
            total, self._count = self._count, None
            return () if total is None else (Reading(HIDDEN_NONFINITE, STEP, total.reshape(1)),)
        elif moment.opens_step:
            self._count, self._ahead = self._ahead, None
        return ()

    def _is_gradient(self, moment: NonfiniteReplaced) -> bool:
        """Whether it is the gradient of a parameter."""
        if moment.ahead:
            return False
        if self._gradients is None:
            kept = (parameter.grad for parameter in moment.roster.parameters)
            self._gradients = frozenset(
                gradient.data_ptr() for gradient in kept if gradient is not None
            )
        return moment.tensor.data_ptr() in self._gradients


def _sum(before: Tensor | None, count: Tensor) -> Tensor:
    return count if before is None or before.device != count.device else before + count
