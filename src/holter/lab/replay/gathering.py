"""Gathering: the gradients of the batches that make a step, when each is traced by itself."""

from torch import Tensor

from holter.lab.setup import LossPhase


class Gathered:
    """The gradients of the batches that make a step, and its update; each is traced by itself."""

    def __init__(self, phase: LossPhase) -> None:
        self._phase = phase
        self._sums: dict[Tensor, Tensor] = {}

    def keep(self) -> None:
        """A batch is through, and others follow."""
        self._add()
        for parameter in self._phase.parameters:
            if parameter.grad is not None:
                self._sums[parameter] = parameter.grad

    def update(self) -> None:
        """The update as the training makes it: unscaled, clipped."""
        self._add()
        self._phase.update()

    def _add(self) -> None:
        for each, before in self._sums.items():
            each.grad = before if each.grad is None else each.grad + before
