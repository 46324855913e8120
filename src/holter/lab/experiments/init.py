"""Activations and gradients of each layer at initialisation."""

from typing import Any

import torch
from torch import Tensor, nn

from holter.lab.batches import as_real, tensors
from holter.lab.experiments import experiment
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Setup
from holter.lab.writing import Lab
from holter.record.signals import INIT_ACTIVATION_STD, INIT_GRAD_RMS, INIT_WEIGHT_STD


@experiment(emits=(INIT_ACTIVATION_STD, INIT_GRAD_RMS, INIT_WEIGHT_STD), preflight=True)
def init(setup: Setup, lab: Lab) -> None:
    """Do activations and gradients keep their scale with depth at initialisation?

    Runs one forward and one backward pass on the first batch. Rules judge the first recorded steps;
    this is the table of layers behind them.
    """
    batches = setup.batches(1)
    if not batches:
        raise InapplicableError("there are no training batches")
    spread: dict[str, float] = {}

    def remember(name: str) -> Any:
        def hook(_: nn.Module, __: Any, output: Any) -> None:
            first = next((t for t in tensors(output) if t.is_floating_point()), None)
            if first is not None and name not in spread:
                spread[name] = float(first.detach().float().std(correction=0))

        return hook

    handles = [
        module.register_forward_hook(remember(name or label or "model"))
        for label, model in setup.models.items()
        for name, module in model.named_modules(prefix=label)
        if next(module.parameters(recurse=False), None) is not None
    ]
    try:
        loss = setup.loss(batches[0])
    finally:
        for handle in handles:
            handle.remove()
    if loss.requires_grad:
        setup.model.zero_grad()
        torch.autograd.backward(loss.mean())
    weights = [
        (name, parameter)
        for label, model in setup.models.items()
        for name, parameter in model.named_parameters(prefix=label)
        if parameter.dim() > 1
    ]
    for place, (name, value) in enumerate(spread.items()):
        lab.write(INIT_ACTIVATION_STD, [value], trial=name, first=place)
    for place, (name, parameter) in enumerate(weights):
        lab.write(INIT_WEIGHT_STD, [_spread(parameter)], trial=name, first=place)
        if parameter.grad is not None:
            size = float(as_real(parameter.grad).float().square().mean().sqrt())
            lab.write(INIT_GRAD_RMS, [size], trial=name, first=place)


def _spread(tensor: Tensor) -> float:
    with torch.no_grad():
        return float(as_real(tensor).float().std(correction=0))
