"""What is not finite and is replaced before anybody sees it."""

from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import Tensor

from holter.collectors import STEP, Reading
from holter.collectors.moments import BackwardBegins, Depth, NonfiniteReplaced, StepEnds
from holter.collectors.outputs import readable
from holter.signals import HIDDEN_NONFINITE, Signal


class Hidden:
    """Counts what `torch.nan_to_num` replaces, in a forward pass or in gradients before a step."""

    emits: ClassVar[tuple[Signal, ...]] = (HIDDEN_NONFINITE,)
    at: ClassVar[tuple[type, ...]] = (NonfiniteReplaced, BackwardBegins, StepEnds)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = (NonfiniteReplaced,)

    def __init__(self) -> None:
        self._count: Tensor | None = None  # of the open step
        self._ahead: Tensor | None = None  # of the one whose forward this is

    def read(self, moment: NonfiniteReplaced | BackwardBegins | StepEnds) -> Iterable[Reading]:
        """The count of the step, at its end."""
        if isinstance(moment, NonfiniteReplaced):
            tensor = readable(moment.tensor)
            if tensor is None:
                return ()
            count = tensor.numel() - torch.isfinite(tensor).sum()
            if moment.ahead:
                self._ahead = _sum(self._ahead, count)
            else:
                self._count = _sum(self._count, count)
        elif isinstance(moment, StepEnds):
            total, self._count = self._count, None
            return () if total is None else (Reading(HIDDEN_NONFINITE, STEP, total.reshape(1)),)
        elif moment.opens_step:
            self._count, self._ahead = self._ahead, None
        return ()


def _sum(before: Tensor | None, count: Tensor) -> Tensor:
    return count if before is None or before.device != count.device else before + count
