"""What the optimizer's step changed: how far each parameter moved, and how much of it did not."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

import torch
from torch import Tensor

from holter.record.signals import UPDATE_RATIO, UPDATE_UNCHANGED_FRACTION, Signal
from holter.watching.collectors import Reading
from holter.watching.collectors.moments import AfterUpdate, BeforeUpdate, Depth
from holter.watching.collectors.room import fits
from holter.watching.collectors.roster import Subject
from holter.watching.stats import Statistics


class Updates:
    """Compares the parameters with a copy made before the update."""

    emits: ClassVar[tuple[Signal, ...]] = (UPDATE_RATIO, UPDATE_UNCHANGED_FRACTION)
    at: ClassVar[tuple[type, ...]] = (BeforeUpdate, AfterUpdate)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._stats = Statistics()
        self._before: dict[int, tuple[Subject, list[Tensor]]] = {}  # by the optimizer's index

    def read(self, moment: BeforeUpdate | AfterUpdate) -> Iterable[Reading]:
        """A value for each parameter, after the update."""
        subject = moment.subject
        if isinstance(moment, BeforeUpdate):
            if (copies := _copies(subject.parameters)) is not None:
                self._before[subject.index] = subject, copies
            return
        known, before = self._before.pop(subject.index, (None, []))
        if known is not subject:
            return
        after = [parameter.detach() for parameter in subject.parameters]
        change, old, unchanged = self._stats.difference(before, after, like=subject).unbind(dim=1)
        still = torch.zeros_like(change)  # what did not move has a ratio of 0, even if it is 0
        ratio = torch.where(change == 0, still, change / old)
        yield Reading(UPDATE_RATIO, subject.names, ratio)
        yield Reading(
            UPDATE_UNCHANGED_FRACTION, subject.names, self._stats.shares(unchanged, before)
        )


@torch.no_grad()
def _copies(parameters: Sequence[Tensor]) -> list[Tensor] | None:
    """Copies of parameters: by one launch where they are on a GPU; None if it is nearly full."""
    held = [parameter.detach() for parameter in parameters]
    if held and held[0].is_cuda and not fits(sum(each.nbytes for each in held), held[0].device):
        return None
    is_plain = all(type(tensor) is Tensor and tensor.is_floating_point() for tensor in held)
    if is_plain and held and held[0].is_cuda:
        return list(torch._foreach_mul(held, 1.0))  # noqa: SLF001
    return [tensor.clone() for tensor in held]
