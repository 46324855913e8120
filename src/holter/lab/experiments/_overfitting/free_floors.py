"""Floors of losses that are written by hand: found by moving the model's outputs as if free."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from holter.lab.batches import changed, cloned
from holter.lab.randomness import same_randomness
from holter.lab.setup import Batch, Setup

_STEPS = 25  # of LBFGS in each of two rounds: the second tells whether the first came to an end
_SETTLED = 0.02  # share of the first round's way that the second may still go
_FLAT = 0.05  # share of the slope at the beginning, or of the loss: else the search got stuck
PASSES = 4 * _STEPS  # forward passes at most, about


def free_floor(setup: Setup, batch: Batch, *, shared: int = 0) -> float | None:
    """The least loss of free outputs; `shared` by so many samples, that of one answer for all.

    None where the loss is not made of the model's outputs, or falls without end.
    """
    outputs = _Outputs(shared)
    handle = setup.entry.register_forward_hook(outputs.replace)
    try:
        start = outputs.loss(setup, batch)
        if not outputs.free or not start.requires_grad:
            return None
        optimizer: torch.optim.Optimizer = torch.optim.LBFGS(
            outputs.free, max_iter=_STEPS, max_eval=2 * _STEPS, line_search_fn="strong_wolfe"
        )
        levels = [outputs.differentiated(setup, batch)]
        slopes = [outputs.slope]
        for _ in range(2):
            optimizer.step(lambda: outputs.differentiated(setup, batch))
            levels.append(outputs.differentiated(setup, batch))
            slopes.append(outputs.slope)
    except RuntimeError:  # it asks how outputs came about, or takes none beyond some bounds
        return None
    finally:
        handle.remove()
    first, second = levels[0] - levels[1], levels[1] - levels[2]
    settled = second <= _SETTLED * first + 1e-6 * abs(levels[0])
    flat = slopes[2] <= _FLAT * slopes[0] or abs(levels[2]) <= _FLAT * abs(levels[0])
    return levels[2] if settled and flat and all(map(math.isfinite, levels)) else None


class _Outputs:
    """Free tensors in place of what a model returns, call by call."""

    def __init__(self, shared: int) -> None:
        self.free: list[Tensor] = []
        self._shared = shared
        self._place = 0

    def replace(self, _: nn.Module, __: Any, output: Any) -> Any:
        """What the model returns instead."""
        return changed(output, self._own)

    def loss(self, setup: Setup, batch: Batch) -> Tensor:
        """The loss of the free outputs."""
        self._place = 0
        with same_randomness(setup):
            return setup.loss(cloned(batch)).mean()

    def differentiated(self, setup: Setup, batch: Batch) -> float:
        """The same with gradients for the free outputs, and for nothing else."""
        loss = self.loss(setup, batch)
        gradients = torch.autograd.grad(loss, self.free, allow_unused=True)
        for each, gradient in zip(self.free, gradients, strict=True):
            each.grad = torch.zeros_like(each) if gradient is None else gradient
        return float(loss.detach())

    @property
    def slope(self) -> float:
        """Size of the gradient."""
        return math.hypot(*(float(each.grad.norm()) for each in self.free if each.grad is not None))

    def _own(self, output: Tensor) -> Tensor:
        if not output.is_floating_point() or not output.dim():
            return output  # a loss that the model returns itself is not free
        if self._place == len(self.free):
            start = output.detach().float()
            alike = self._shared and len(start) == self._shared
            start = start.mean(0, keepdim=True) if alike else start.clone()
            self.free.append(start.requires_grad_())
        self._place += 1
        return self.free[self._place - 1].expand_as(output).to(output.dtype)
