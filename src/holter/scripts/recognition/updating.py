"""Updates without an optimizer of torch, and the one that would make them."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

_PROPORTIONAL = 0.02  # of an update: what may be left when a multiple of the gradient is taken off
_EVEN = 0.8  # share of the weights that Adam's first step changes by its learning rate
_NEAR = 0.1  # of the learning rate
_TINY = 1e-4  # of the largest gradient; Adam's epsilon may matter below


class OwnUpdates:
    """Looks at weights between two backwards, as long as no optimizer of torch is seen to step."""

    def __init__(self) -> None:
        self._before: list[tuple[Tensor, Tensor]] = []
        self._gradients: dict[int, Tensor] = {}
        self._mark: Tensor | None = None
        self._changed: list[tuple[Tensor, Tensor, Tensor]] = []  # before, gradient, after
        self.param_groups: list[dict[str, Any]] = [{"params": []}]  # as an optimizer has them

    @property
    def seen(self) -> bool:
        """Whether an update was seen."""
        return bool(self._changed)

    def backward_begins(self, parameters: Sequence[Tensor]) -> bool:
        """Whether weights have changed since the last backward ended."""
        mark = _mark(parameters)
        before, self._mark = self._mark, mark
        changed = before is not None and (mark.shape != before.shape or not mark.equal(before))
        if changed and not self._changed:
            # Another model may have gradients, too, but is not updated here.
            moved = [
                (parameter, was)
                for parameter, was in self._before
                if id(parameter) in self._gradients and not torch.equal(parameter, was)
            ]
            self._changed = [
                (was, self._gradients[id(parameter)], parameter.detach().clone())
                for parameter, was in moved
            ]
            self.param_groups[0]["params"] = [parameter for parameter, _ in moved]
        if not self._changed:
            self._before = [(p, p.detach().clone()) for p in parameters]
        return changed

    def backward_ended(self) -> None:
        """Keep the gradients that the coming update is made of."""
        if not self._changed:
            self._gradients = {
                id(parameter): parameter.grad.detach().clone()
                for parameter, _ in self._before
                if parameter.grad is not None and parameter.grad.layout is torch.strided
            }

    def optimizer(self) -> Optimizer | None:
        """Build the optimizer of torch whose first step is the update that was seen."""
        parameters = self.param_groups[0]["params"]
        if not parameters:
            return None
        gradient = torch.cat([each.flatten() for _, each, _ in self._changed]).double()
        update = torch.cat([(after - was).flatten() for was, _, after in self._changed]).double()
        rate = -float(update @ gradient / (gradient @ gradient).clamp_min(1e-300))
        if rate > 0 and float((update + rate * gradient).norm()) <= _PROPORTIONAL * float(
            update.norm()
        ):
            return torch.optim.SGD(parameters, lr=_rounded(rate))
        clear = gradient.abs() > _TINY * gradient.abs().max()
        steps = -(update * gradient.sign())[clear]
        rate = float(steps.median())
        if rate > 0 and float(((steps - rate).abs() <= _NEAR * rate).double().mean()) >= _EVEN:
            return torch.optim.Adam(parameters, lr=_rounded(rate))
        return None


def _mark(parameters: Sequence[Tensor]) -> Tensor:
    return torch.stack([each.detach().double().sum().cpu() for each in parameters])


def _rounded(rate: float) -> float:
    return float(f"{rate:.3g}")
