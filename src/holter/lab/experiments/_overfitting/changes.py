"""What a trial may change of a training step while it lasts."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from holter.lab.batches import changed
from holter.lab.calls import inputs_replaced
from holter.lab.setup import Setup


@runtime_checkable
class _Drawn(Protocol):
    """A layer whose weights can be drawn anew."""

    def reset_parameters(self) -> None: ...


def groups(setup: Setup) -> list[dict[str, Any]]:
    """All groups of parameters of all optimizers."""
    return [group for optimizer in setup.optimizers for group in optimizer.param_groups]


def peaks(setup: Setup) -> list[float]:
    """The learning rate of each group, or the highest that its schedule is known to come to."""
    found = []
    for optimizer in setup.optimizers:
        for group in optimizer.param_groups:
            rates = [float(group[name]) for name in ("lr", "initial_lr", "max_lr") if name in group]
            by_hand = optimizer.defaults.get("lr")  # a warm-up that begins at 0
            found.append(max(rates) or float(by_hand or 0.0))
    return found


def set_rate(group: dict[str, Any], rate: float) -> None:
    """In place where the rate is a tensor, which a compiled step may hold."""
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(rate)
    else:
        group["lr"] = rate


def logits(function: str, arguments: Any) -> Tensor:
    """Logits of the probabilities that a loss function is given."""
    given: Tensor = arguments["input"]
    if function == "cross_entropy":
        return given.clamp_min(torch.finfo(given.dtype).tiny).log()
    return torch.logit(given, 1e-6)


def shaped(_: str, arguments: Any) -> Tensor:
    """Predictions in the shape of the targets."""
    shaped: Tensor = arguments["input"].reshape(arguments["target"].shape)
    return shaped


@contextmanager
def left_out(layer: nn.Module) -> Iterator[None]:
    """Inside, a layer gives on what it is given."""
    handle = layer.register_forward_hook(lambda _, inputs, __: inputs[0])
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def decay_off(setup: Setup) -> Iterator[None]:
    """Inside, no weights decay; whoever restores the optimizers restores it."""
    for group in groups(setup):
        if group.get("weight_decay"):
            group["weight_decay"] = 0.0
    yield


@contextmanager
def scaled_rates(setup: Setup, factor: float) -> Iterator[None]:
    """Inside, learning rates are multiplied; restored with the optimizers."""
    for group in groups(setup):
        set_rate(group, factor * float(group["lr"]))
    yield


@contextmanager
def in_mode(layers: list[_BatchNorm], training: bool) -> Iterator[None]:
    """Inside, layers are in another mode; restored with the model."""
    for each in layers:
        each.training = training
    yield


@contextmanager
def thawed(parameters: list[nn.Parameter]) -> Iterator[None]:
    """Inside, parameters require gradients; restored with the model."""
    for each in parameters:
        each.requires_grad_(True)
    yield


@contextmanager
def drawn_anew(setup: Setup) -> Iterator[None]:
    """The weights of all layers that can draw them; restored with the model."""
    for model in setup.models.values():
        for module in model.modules():
            if isinstance(module, _Drawn):
                module.reset_parameters()
    yield


def other_inputs(
    model: nn.Module, count: int, change: Callable[[Tensor], Tensor]
) -> AbstractContextManager[None]:
    """Inside, the model is given what `change` makes of the numbers of `count` samples."""

    def of_numbers(each: Tensor) -> Tensor:
        return change(each) if is_data(each, count) else each

    return inputs_replaced(
        model, lambda args, kwargs: (changed(args, of_numbers), changed(kwargs, of_numbers))
    )


def is_data(tensor: Tensor, count: int) -> bool:
    """Whether a tensor holds numbers of each sample, and is no mask."""
    if not tensor.is_floating_point() or not tensor.dim() or len(tensor) != count:
        return False
    values = tensor.detach()
    return bool(values.isfinite().all() and ((values != 0) & (values != 1)).any())


def standardised(each: Tensor) -> Tensor:
    """Each feature with mean 0 and standard deviation 1 over the samples."""
    spread = each.std(0, correction=0)
    return (each - each.mean(0)) / torch.where(spread > 0, spread, 1.0)


def noise(each: Tensor) -> Tensor:
    """Standard normal numbers, the same in every step."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(each.shape, generator=generator).to(each)


@contextmanager
def scaled(model: nn.Module, scale: Tensor, shift: Tensor, unit: float) -> Iterator[None]:
    """Inside, outputs are scaled and shifted."""
    handle = model.register_forward_hook(
        lambda _, __, output: output * scale.to(output.dtype) + unit * shift.to(output.dtype)
    )
    try:
        yield
    finally:
        handle.remove()
