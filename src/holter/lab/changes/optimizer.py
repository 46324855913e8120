"""Optimizers: single settings replaced, moments reset, or another optimizer altogether."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from holter.lab.changes import Altered, Change, TappedChange
from holter.lab.changes._hooks import Group, settings_in_steps
from holter.lab.setup import Setup
from holter.record.trials import TrialKind, TrialName
from holter.watching.blackbox.shadow import held_by

_LEAST_EPSILON, _MORE_EPSILON = 1e-4, 1e3  # at least, and times what it is
_ADAM_RATE = 1e-3


def _setting(name: str, value: Callable[[Any], Any], altered: Altered) -> Any:
    """Replace one setting of every parameter group that has it."""
    return settings_in_steps(
        lambda _, group: {name: value(group[name])} if name in group else {}, altered
    )


NO_WEIGHT_DECAY = TappedChange(
    TrialName(TrialKind.NO_WEIGHT_DECAY),
    "Set the weight decay to 0.",
    partial(_setting, "weight_decay", lambda _: 0.0),
)
LARGER_EPSILON = TappedChange(
    TrialName(TrialKind.LARGER_EPSILON),
    f"Raise the optimizer's epsilon {_MORE_EPSILON:g} times, to at least {_LEAST_EPSILON:g}.",
    partial(_setting, "eps", lambda own: max(_LEAST_EPSILON, _MORE_EPSILON * own)),
)
LINE_SEARCH = TappedChange(
    TrialName(TrialKind.LINE_SEARCH),
    "Let LBFGS search along its direction for a step that lowers the loss.",
    partial(_setting, "line_search_fn", lambda _: "strong_wolfe"),
)


def _defaults(names: tuple[str, ...], optimizer: Optimizer, _: Group) -> dict[str, Any]:
    parameters = inspect.signature(type(optimizer).__init__).parameters
    return {name: parameters[name].default for name in names if name in parameters}


DEFAULT_EPSILON = TappedChange(
    TrialName(TrialKind.DEFAULT_EPSILON),
    "Use the default epsilon of the optimizer.",
    partial(settings_in_steps, partial(_defaults, ("eps",))),
)
DEFAULT_MOMENTUM = TappedChange(
    TrialName(TrialKind.DEFAULT_MOMENTUM),
    "Use the default betas or momentum of the optimizer.",
    partial(settings_in_steps, partial(_defaults, ("betas", "momentum"))),
)


def reset_moments(setup: Setup) -> None:
    """Let every Adam begin again with moments of 0."""
    for optimizer in setup.optimizers:
        for parameter in held_by(optimizer):
            state = optimizer.state.get(parameter, {})
            for name in ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"):
                if name in state:
                    state[name].zero_()
            if isinstance(state.get("step"), Tensor):
                state["step"].zero_()
            elif "step" in state:
                state["step"] = 0


def adam(*, nothing_frozen: bool = False) -> Change:
    """Train with Adam on all parameters that require gradients, or on all that can."""
    which = "all" if nothing_frozen else "all trainable"
    return Change(
        TrialName(TrialKind.NOTHING_FROZEN if nothing_frozen else TrialKind.ADAM),
        f"Train {which} parameters with Adam at a learning rate of {_ADAM_RATE:g}, unclipped.",
        partial(_with_adam, nothing_frozen),
    )


@contextmanager
def _with_adam(nothing_frozen: bool, setup: Setup) -> Iterator[Setup]:
    parameters = parameters_of(setup)
    flags = [parameter.requires_grad for parameter in parameters]
    if nothing_frozen:
        for parameter in parameters:
            parameter.requires_grad_(parameter.is_floating_point())
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=_ADAM_RATE)
    phase = replace(setup.phases[0], optimizers=(optimizer,), max_norm=None)
    try:
        yield replace(setup, phases=(phase,))
    finally:
        for parameter, flag in zip(parameters, flags, strict=True):
            parameter.requires_grad_(flag)


def parameters_of(setup: Setup) -> list[nn.Parameter]:
    """Return the parameters of all models."""
    return [parameter for model in setup.models.values() for parameter in model.parameters()]
