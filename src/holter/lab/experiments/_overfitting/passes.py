"""A forward pass, and all that its loss is made of."""

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from holter.lab.batches import cloned, detached, tensors
from holter.lab.calls import LossEvaluation, losses_seen
from holter.lab.setup import Batch, Setup


@dataclass(frozen=True, slots=True)
class Pass:
    """One forward pass: its loss, the loss functions it called, what the model got and gave."""

    loss: float
    calls: tuple[LossEvaluation, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Any, ...]  # one for each call of the model
    last_layers: tuple[nn.Module, ...] = ()  # activations whose output is the model's

    def predictions(self, count: int) -> Tensor | None:
        """What is predicted for each of `count` samples, a row each; None where it is not told."""
        given = [call.arguments.get("input") for call in self.calls]
        for each in (*given, *self.outputs):
            told = isinstance(each, Tensor) and each.is_floating_point() and each.dim()
            if told and count and len(each) % count == 0:
                rows: Tensor = each.float().reshape(count, -1)
                return rows
        return None

    def targets(self, count: int) -> int:
        """How many classes and numbers are to be learned; 0 where it is not told."""
        found = 0
        for call in self.calls:
            target = call.arguments.get("target")
            if isinstance(target, Tensor):
                soft = call.function == "cross_entropy" and target.is_floating_point()
                found += len(target) if soft else target.numel()
        predicted = self.predictions(count)
        return found or (0 if predicted is None else predicted.numel())

    def spread(self, count: int) -> float:
        """How much predictions differ over samples, relative to their size; infinite if unknown."""
        rows = self.predictions(count)
        if rows is None or count < 2:
            return math.inf
        size = float(rows.square().mean().sqrt())
        return float(rows.std(0, correction=0).square().mean().sqrt()) / size if size else 0.0


def forward(setup: Setup, batch: Batch) -> Pass:
    """The forward pass on `batch`; random numbers go on, buffers may change."""
    inputs: list[Tensor] = []
    outputs: list[Any] = []
    made: dict[nn.Module, Any] = {}
    last: list[nn.Module] = []

    def remember(_: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        inputs.extend(tensor.detach().clone() for tensor in tensors((args, kwargs)))
        outputs.append(detached(output))
        last.extend(layer for layer, own in made.items() if own is output)

    def see(layer: nn.Module, given: Any, output: Any) -> None:
        if _is_activation(given, output):
            made[layer] = output

    bare = [module for module in setup.model.modules() if next(module.parameters(), None) is None]
    handles = [each.register_forward_hook(see) for each in bare]
    handles.append(setup.entry.register_forward_hook(remember, with_kwargs=True))
    try:
        with losses_seen() as calls:  # with gradients, which some losses are made of
            loss = setup.loss(cloned(batch))
    finally:
        for handle in handles:
            handle.remove()
    told = [
        replace(call, arguments=detached(dict(call.arguments)), value=call.value.detach())
        for call in calls
    ]
    return Pass(
        float(loss.detach().float().mean()), tuple(told), tuple(inputs), tuple(outputs), tuple(last)
    )


def _is_activation(given: Any, output: Any) -> bool:
    """Whether a layer changes numbers, and leaves them in their places."""
    first = given[0] if given else None
    if not isinstance(first, Tensor) or not isinstance(output, Tensor):
        return False
    return first.shape == output.shape and not torch.equal(first, output)
