"""Which parameters are trained: all of the model, also those frozen or in no optimizer."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from weakref import WeakSet

from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim import Optimizer

from holter.lab.changes import Altered, TappedChange
from holter.lab.changes._hooks import around_steps, is_training
from holter.record.trials import TrialKind, TrialName
from holter.watching.blackbox.shadow import held_by
from holter.watching.taps import Tap


@contextmanager
def _all_held(unfreeze: bool, altered: Altered) -> Iterator[None]:
    """Give parameters with gradients that no optimizer holds to the one that steps.

    Every module that is called counts, also one that its model keeps in a plain list.
    """
    models: WeakSet[nn.Module] = WeakSet()
    optimizers: WeakSet[Optimizer] = WeakSet()
    added: list[tuple[Optimizer, nn.Parameter]] = []
    frozen: list[nn.Parameter] = []

    def meet(module: nn.Module, _: Any) -> None:
        if is_training() and module not in models:
            models.add(module)
            for parameter in module.parameters() if unfreeze else ():
                if parameter.is_floating_point() and not parameter.requires_grad:
                    frozen.append(parameter)
                    parameter.requires_grad_()
                    altered()

    def join(original: Any) -> Any:
        def add_param_group(self: Optimizer, group: Any) -> None:
            original(self, group)
            optimizers.add(self)

        return add_param_group

    def complete(optimizer: Optimizer) -> None:
        optimizers.add(optimizer)
        held = {id(p) for each in optimizers for p in held_by(each)}
        for model in list(models):
            for parameter in model.parameters():
                if parameter.grad is not None and id(parameter) not in held:
                    optimizer.param_groups[0]["params"].append(parameter)
                    added.append((optimizer, parameter))
                    held.add(id(parameter))
                    altered()

    tap = Tap(Optimizer, "add_param_group", join)
    hook = register_module_forward_pre_hook(meet)
    try:
        with around_steps(before=complete):
            yield
    finally:
        hook.remove()
        tap.remove()
        for parameter in frozen:
            parameter.requires_grad_(False)
        for optimizer, parameter in added:
            group = optimizer.param_groups[0]["params"]
            group[:] = [other for other in group if other is not parameter]
            optimizer.state.pop(parameter, None)


ALL_IN_OPTIMIZER = TappedChange(
    TrialName(TrialKind.ALL_IN_OPTIMIZER),
    "Let the optimizer train every parameter of the model that gets a gradient.",
    partial(_all_held, False),
)
ALL_TRAINABLE = TappedChange(
    TrialName(TrialKind.ALL_TRAINABLE),
    "Unfreeze every parameter of the model and let the optimizer train it.",
    partial(_all_held, True),
)
