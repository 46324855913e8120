"""Perturb weights that no gradient of the predictions reaches, to see whether they matter."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import BackwardCFunction
from torch.overrides import TorchFunctionMode

from holter.lab.batches import tensors
from holter.lab.experiments import experiment
from holter.lab.experiments._probing.probe import (
    Tensors,
    difference,
    probed,
    rounding,
    some_batches,
)
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Setup
from holter.lab.writing import Lab
from holter.record.signals import PATH_CHANGE, PATH_CUTS, PATH_ROUNDING, PATH_STOPS

_MOST = 32  # modules whose weights are perturbed
_STOPS = ("detach", "detach_")


@experiment(emits=(PATH_CHANGE, PATH_ROUNDING, PATH_STOPS, PATH_CUTS))
def gradient_paths(setup: Setup, lab: Lab, *, output: str = "", seconds: float = 1.0) -> None:
    """Do all weights that matter get a gradient?

    Calls the model as in training, follows the graph of its predictions to the trainable weights,
    and perturbs the weights of each module that the graph does not reach, one module at a time: the
    predictions must not change.

    `output`: path of the predictions in what the model returns, such as `[0]`; its first tensor
    unless given.
    `seconds`: time limit.
    """
    (batch,) = some_batches(setup, 1)
    probe, before = probed(setup, batch, as_trained=True)
    name = output if output in before else next(iter(before))
    cuts = _Cuts()
    with cuts:
        predictions = probe.with_graph()[name]
    if not predictions.requires_grad:
        raise InapplicableError("the predictions have no gradient")
    reached = _leaves(predictions)
    del predictions
    modules = [
        (path, held)
        for path, module in setup.model.named_modules()
        if (held := [p for p in module.parameters(recurse=False) if p.requires_grad])
        and not any(id(each) in reached for each in held)
    ]
    lab.write(PATH_CHANGE, [0.0])
    until = time.perf_counter() + seconds
    for path, held in modules[:_MOST]:
        with _perturbed(held):
            change = _change(before[name], probe.outputs(), name)
        lab.write(PATH_CHANGE, [change], trial=path)
        if time.perf_counter() > until:
            break
    again = probe.outputs()[name]
    lab.write(PATH_ROUNDING, [rounding(before[name], again)])
    lab.write(PATH_STOPS, [cuts.stops])
    for function, count in cuts.functions.items():
        lab.write(PATH_CUTS, [count], trial=function)


def _leaves(output: Tensor) -> set[int]:
    """The identities of the leaves that the graph of an output reaches."""
    seen: set[Any] = set()
    waiting: list[Any] = [output.grad_fn]
    leaves = {id(output)}
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(node, BackwardCFunction):  # a checkpoint makes its graph in backward only
            raise InapplicableError("a function written in Python may hide a part of the graph")
        if (leaf := getattr(node, "variable", None)) is not None:
            leaves.add(id(leaf))
        waiting += [each for each, _ in node.next_functions]
    return leaves


def _change(before: Tensor, outputs: Tensors, name: str) -> float:
    after = outputs.get(name)
    if after is None or after.shape != before.shape:
        return 0.0
    return float(difference(before, after).max())


@contextmanager
@torch.no_grad()
def _perturbed(held: list[nn.Parameter]) -> Iterator[None]:
    """Add as much to the weights, at random, as they vary by themselves."""
    kept = [each.detach().clone() for each in held]
    size = max(float(each.float().std(unbiased=False)) for each in kept) or 1.0
    numbers = torch.Generator().manual_seed(0)
    for each in held:
        noise = torch.randn(each.shape, generator=numbers) * size
        each.add_(noise.to(each.device, each.dtype))
    try:
        yield
    finally:
        for each, value in zip(held, kept, strict=True):
            each.copy_(value)


class _Cuts(TorchFunctionMode):
    """Counts calls that take a tensor with a gradient and return one without."""

    def __init__(self) -> None:
        super().__init__()
        self.stops = 0
        self.functions: Counter[str] = Counter()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        given = [each for each in tensors((args, kwargs)) if each.requires_grad]
        if not given:
            return result
        name = getattr(func, "__name__", "")
        made = tensors(result) if isinstance(result, Tensor | tuple) else []
        if name in _STOPS or func == Tensor.data.__get__:  # type: ignore[attr-defined]
            self.stops += any(each.grad_fn is not None for each in given)
        elif any(not each.requires_grad for each in made):
            self.functions[name if torch.is_grad_enabled() else "no_grad"] += 1
        return result
