"""Taps on what acts on optimizers: parameter groups, gradient scalers, learning-rate schedulers."""

from typing import Any, Protocol

from torch import Tensor
from torch.amp import GradScaler
from torch.optim import Optimizer, lr_scheduler

from holter.watching.tap import Call, Tap


class OptimizerListener(Protocol):
    """Hears of what a script does with its optimizers, but for their steps: these have hooks."""

    def parameters_joined(self, optimizer: Optimizer) -> None:
        """An optimizer was given a parameter group: it is being made, or it grows."""

    def loss_scaled(self, scaler: GradScaler, loss: Tensor, scaled: Tensor) -> None:
        """A GradScaler multiplied a loss."""

    def gradients_unscaled(self, optimizer: Optimizer) -> None:
        """A GradScaler has divided the gradients of an optimizer by its scale."""

    def scaler_stepped(self, optimizer: Optimizer) -> None:
        """A GradScaler has stepped an optimizer, or skipped the step."""


class ScheduleListener(Protocol):
    """Hears of learning-rate schedulers."""

    def scheduler_stepped(self, scheduler: lr_scheduler.LRScheduler, given: object) -> None:
        """A learning-rate scheduler was stepped, with a metric or an epoch where it takes one."""


def tap_optimizers(listener: OptimizerListener) -> list[Tap]:
    """Tap parameter groups and scalers."""

    def around(original: Call) -> Call:
        def add_param_group(self: Optimizer, param_group: Any) -> Any:
            result = original(self, param_group)
            listener.parameters_joined(self)
            return result

        return add_param_group

    groups = Tap(Optimizer, "add_param_group", around)
    return [groups, *_scaling(listener)]


def _scaling(listener: OptimizerListener) -> list[Tap]:
    def scale(original: Call) -> Call:
        def scale_outputs(self: GradScaler, outputs: Any) -> Any:
            result = original(self, outputs)
            if self.is_enabled():
                losses = [outputs] if isinstance(outputs, Tensor) else outputs
                scaled = [result] if isinstance(outputs, Tensor) else result
                for loss, product in zip(losses, scaled, strict=False):
                    listener.loss_scaled(self, loss, product)
            return result

        return scale_outputs

    def unscale(original: Call) -> Call:
        def unscaled(self: GradScaler, optimizer: Optimizer) -> Any:
            result = original(self, optimizer)
            if self.is_enabled():
                listener.gradients_unscaled(optimizer)
            return result

        return unscaled

    def step(original: Call) -> Call:
        def stepped(self: GradScaler, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
            if not self.is_enabled():
                return original(self, optimizer, *args, **kwargs)
            result = original(self, optimizer, *args, **kwargs)
            listener.scaler_stepped(optimizer)
            return result

        return stepped

    methods = {"scale": scale, "unscale_": unscale, "step": step}
    return [Tap(GradScaler, name, around) for name, around in methods.items()]


def tap_schedulers(listener: ScheduleListener) -> list[Tap]:
    """Tap schedulers."""
    depth = 0  # a scheduler steps itself when it is made, and those it is made of: count none

    def make(original: Call) -> Call:
        def made(self: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            depth += 1
            try:
                return original(self, *args, **kwargs)
            finally:
                depth -= 1

        return made

    def step(original: Call) -> Call:
        def stepped(self: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            depth += 1
            try:
                result = original(self, *args, **kwargs)
            finally:
                depth -= 1
            if depth == 0:
                given = next(iter((*args, *kwargs.values())), None)
                listener.scheduler_stepped(self, given)
            return result

        return stepped

    classes = [
        kind
        for kind in vars(lr_scheduler).values()
        if isinstance(kind, type) and issubclass(kind, lr_scheduler.LRScheduler)
    ]
    return [
        *(Tap(kind, "step", step) for kind in classes if "step" in vars(kind)),
        *(Tap(kind, "__init__", make) for kind in classes if "__init__" in vars(kind)),
    ]
