"""One thing changed at a time: what may make a model fit samples that it does not fit as it is."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim import Optimizer

from holter.experiments.batches import changed, take
from holter.experiments.boundary import (
    LossCall,
    inputs_replaced,
    predictions_replaced,
    targets_replaced,
)
from holter.experiments.quieting import dropout_off
from holter.experiments.setup import Batch, Setup

_SURE = 1e-3  # how near to 1 probabilities add up
_NUMBERS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_LOWER, _HIGHER = (0.1, 0.01, 0.001), (10.0, 100.0, 1000.0, 10000.0)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a training step when it is asked what else could be tried."""

    setup: Setup
    batch: Batch
    count: int  # samples
    calls: tuple[LossCall, ...]  # of loss functions, in one pass
    calls_after: tuple[LossCall, ...]  # the same after training
    outputs: tuple[Any, ...]  # of each call of the model
    last_layers: tuple[nn.Module, ...]  # activations whose output is the model's
    drops: bool  # whether there is dropout
    noisy: bool  # whether random numbers are drawn beside it
    still: bool  # whether no parameter moved
    alike: bool  # whether all samples got the same answer from the beginning
    diverged: bool  # whether the loss rose, was lost, or came to the same answer for all
    falls: bool  # whether the loss falls all the same
    much: bool  # whether much was learned

    @property
    def target(self) -> Tensor | None:
        """The target of each sample, where the only loss function is told."""
        target = self.calls[0].arguments.get("target") if len(self.calls) == 1 else None
        known = isinstance(target, Tensor) and target.dim() and len(target) == self.count
        return target if known else None


@dataclass(frozen=True, slots=True)
class Branch:
    """A trial: the setup to train, what is changed meanwhile, and on which samples."""

    name: str
    setup: Setup
    during: Callable[[], AbstractContextManager[Any]] = field(default=nullcontext)
    factor: float = 1.0  # of the learning rate
    batch: Batch | None = None
    count: int = 0  # of other samples
    control: bool = False  # what it shows is no cause
    same_numbers: bool = False  # the random numbers of every step are those of the first


@runtime_checkable
class _Drawn(Protocol):
    """A layer whose weights can be drawn anew."""

    def reset_parameters(self) -> None: ...


def branches(facts: Facts) -> Iterator[Branch]:
    """All that applies, each once, what tells most first."""
    seen = set()
    for branch in _in_order(facts):
        if branch.name not in seen:
            seen.add(branch.name)
            yield branch


def _in_order(facts: Facts) -> Iterator[Branch]:
    yield from _of_predictions(facts)
    yield from _of_last_layers(facts)
    if facts.still:
        yield from _of_optimizers(facts.setup)
    if facts.still or facts.alike:
        yield _of_weights(facts.setup)
        yield from _of_inputs(facts)
    if facts.falls and facts.alike:
        return
    if not facts.still:
        yield from _of_regularisation(facts)
    yield from _of_batch_norm(facts.setup)
    if not facts.much:
        yield from _of_rates(facts)
        yield from _of_optimizers(facts.setup)
        yield _of_weights(facts.setup)
        yield from _of_inputs(facts)
        yield from _of_labels(facts)
        yield from _of_outputs(facts)  # after the rates: scaling makes faster too
    yield from _of_fewer(facts)


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


def _of_predictions(facts: Facts) -> Iterator[Branch]:
    if len(facts.calls) != 1 or "input" not in facts.calls[0].arguments:
        return
    call, setup = facts.calls[0], facts.setup
    if are_probabilities(call) and all(map(are_probabilities, facts.calls_after)):
        during = partial(predictions_replaced, _logits)
        yield Branch("logits in place of probabilities", setup, during)
    given, target = call.arguments["input"], call.arguments.get("target")
    broadcast = (
        call.function in _NUMBERS
        and isinstance(target, Tensor)
        and given.shape != target.shape
        and given.numel() == target.numel()
    )
    if broadcast:
        during = partial(predictions_replaced, _shaped)
        yield Branch("predictions in the shape of the targets", setup, during)


def are_probabilities(call: LossCall) -> bool:
    """Whether a loss function that applies a softmax or sigmoid is given the result of one."""
    given = call.arguments["input"].detach().float()
    if call.function not in ("cross_entropy", "binary_cross_entropy_with_logits"):
        return False
    if not bool(((given >= 0) & (given <= 1)).all()):
        return False
    sums = given.sum(1 if given.dim() > 1 else 0)
    return call.function != "cross_entropy" or bool(((sums - 1).abs() < _SURE).all())


def _logits(function: str, arguments: Any) -> Tensor:
    given: Tensor = arguments["input"]
    if function == "cross_entropy":
        return given.clamp_min(torch.finfo(given.dtype).tiny).log()
    return torch.logit(given, 1e-6)


def _shaped(_: str, arguments: Any) -> Tensor:
    shaped: Tensor = arguments["input"].reshape(arguments["target"].shape)
    return shaped


def _of_last_layers(facts: Facts) -> Iterator[Branch]:
    for layer in facts.last_layers:
        name = f"the last {type(layer).__name__} left out"
        yield Branch(name, facts.setup, partial(_left_out, layer))


@contextmanager
def _left_out(layer: nn.Module) -> Iterator[None]:
    handle = layer.register_forward_hook(lambda _, inputs, __: inputs[0])
    try:
        yield
    finally:
        handle.remove()


def _of_regularisation(facts: Facts) -> Iterator[Branch]:
    setup, phase = facts.setup, facts.setup.phases[0]
    if facts.drops:
        yield Branch("dropout off", setup, partial(dropout_off, setup))
    if facts.noisy:
        yield Branch("same random numbers in every step", setup, same_numbers=True)
    if phase.max_norm is not None:
        yield Branch("clipping off", replace(setup, phases=(replace(phase, max_norm=None),)))
    if any(group.get("weight_decay") for group in groups(setup)):
        yield Branch("weight decay off", setup, partial(_decay_off, setup))


@contextmanager
def _decay_off(setup: Setup) -> Iterator[None]:
    for group in groups(setup):
        if group.get("weight_decay"):
            group["weight_decay"] = 0.0
    yield  # whoever restores the optimizers restores it


def _of_rates(facts: Facts) -> Iterator[Branch]:
    for factor in (*_LOWER, *_HIGHER[:1]) if facts.diverged else (*_HIGHER, *_LOWER[:1]):
        during = partial(_scaled_rates, facts.setup, factor)
        yield Branch(f"learning rate x {factor:g}", facts.setup, during, factor)


@contextmanager
def _scaled_rates(setup: Setup, factor: float) -> Iterator[None]:
    for group in groups(setup):
        set_rate(group, factor * float(group["lr"]))
    yield


def _of_batch_norm(setup: Setup) -> Iterator[Branch]:
    modules = [each for model in setup.models.values() for each in model.modules()]
    layers = [e for e in modules if isinstance(e, _BatchNorm) and e.running_mean is not None]
    if layers:
        training = any(each.training for each in layers)
        mode = "eval" if training else "training"
        yield Branch(f"batch norm in {mode} mode", setup, partial(_in_mode, layers, not training))


@contextmanager
def _in_mode(layers: list[_BatchNorm], training: bool) -> Iterator[None]:
    for each in layers:
        each.training = training
    yield  # whoever restores the model restores it


def _of_optimizers(setup: Setup) -> Iterator[Branch]:
    parameters = [each for model in setup.models.values() for each in model.parameters()]
    trainable = [each for each in parameters if each.requires_grad]
    able = [each for each in parameters if each.is_floating_point()]
    if trainable:
        yield Branch("Adam on all trainable parameters", _with_adam(setup, trainable))
    if len(able) > len(trainable):
        yield Branch("Adam with nothing frozen", _with_adam(setup, able), partial(_thawed, able))


def _with_adam(setup: Setup, parameters: list[nn.Parameter]) -> Setup:
    adam = torch.optim.Adam(parameters, lr=1e-3)
    return replace(setup, phases=(replace(setup.phases[0], optimizers=(adam,), max_norm=None),))


@contextmanager
def _thawed(parameters: list[nn.Parameter]) -> Iterator[None]:
    for each in parameters:
        each.requires_grad_(True)
    yield


def _of_weights(setup: Setup) -> Branch:
    return Branch("weights drawn anew", setup, partial(_drawn_anew, setup))


@contextmanager
def _drawn_anew(setup: Setup) -> Iterator[None]:
    for model in setup.models.values():
        for module in model.modules():
            if isinstance(module, _Drawn):
                module.reset_parameters()
    yield


def _of_inputs(facts: Facts) -> Iterator[Branch]:
    if len(facts.outputs) != 1:  # inputs of several calls belong together
        return
    for name, change in (
        ("inputs standardised", _standardised),
        ("inputs replaced by noise", _noise),
    ):
        yield Branch(name, facts.setup, partial(_other_inputs, facts, change))


def _other_inputs(facts: Facts, change: Callable[[Tensor], Tensor]) -> AbstractContextManager[None]:
    def of_numbers(each: Tensor) -> Tensor:
        return change(each) if _is_data(each, facts.count) else each

    return inputs_replaced(
        facts.setup.model,
        lambda args, kwargs: (changed(args, of_numbers), changed(kwargs, of_numbers)),
    )


def _is_data(tensor: Tensor, count: int) -> bool:
    """Whether a tensor holds numbers of each sample, and is no mask."""
    if not tensor.is_floating_point() or not tensor.dim() or len(tensor) != count:
        return False
    values = tensor.detach()
    return bool(values.isfinite().all() and ((values != 0) & (values != 1)).any())


def _standardised(each: Tensor) -> Tensor:
    spread = each.std(0, correction=0)
    return (each - each.mean(0)) / torch.where(spread > 0, spread, 1.0)


def _noise(each: Tensor) -> Tensor:
    generator = torch.Generator().manual_seed(0)  # the same in every step
    return torch.randn(each.shape, generator=generator).to(each)


def _of_labels(facts: Facts) -> Iterator[Branch]:
    target = facts.target
    if target is not None and bool((target != target.roll(1, 0)).any()):
        during = partial(targets_replaced, lambda each: each.roll(1, 0))
        yield Branch("labels exchanged", facts.setup, during, control=True)


def _of_outputs(facts: Facts) -> Iterator[Branch]:
    """Outputs that may be scaled and shifted, alike for all samples."""
    output = facts.outputs[0] if len(facts.outputs) == 1 else None
    if not isinstance(output, Tensor) or not output.is_floating_point() or not output.dim():
        return
    channel = {1: None, 2: 1, 3: 2}.get(output.dim(), 1)
    shape = [size if dim == channel else 1 for dim, size in enumerate(output.shape)]
    scale = torch.ones(shape, device=output.device)
    shift = torch.zeros(shape, device=output.device)
    unit = 1.0
    target = facts.target
    if target is not None and facts.calls[0].function in _NUMBERS:
        # A head that can only give positive numbers begins at the lowest of the targets.
        unit = max(float(target.float().std(correction=0)), 1e-12)
        scale *= unit / max(float(output.float().std(correction=0)), 1e-6 * unit)
        shift += (float(target.min()) - float(scale.max() * output.float().min())) / unit
    scale.requires_grad_(), shift.requires_grad_()
    extra: Optimizer = torch.optim.Adam([scale, shift], lr=0.03)
    phase = facts.setup.phases[0]
    phase = replace(phase, optimizers=(*phase.optimizers, extra))
    during = partial(_scaled, facts.setup.model, scale, shift, unit)
    yield Branch("outputs scaled and shifted", replace(facts.setup, phases=(phase,)), during)


@contextmanager
def _scaled(model: nn.Module, scale: Tensor, shift: Tensor, unit: float) -> Iterator[None]:
    handle = model.register_forward_hook(
        lambda _, __, output: output * scale.to(output.dtype) + unit * shift.to(output.dtype)
    )
    try:
        yield
    finally:
        handle.remove()


def _of_fewer(facts: Facts) -> Iterator[Branch]:
    if facts.count < 3:
        return
    other = facts.count - 1
    if facts.target is not None:
        differs = (facts.target != facts.target[:1]).reshape(facts.count, -1).any(1)
        other = int(differs.int().argmax()) or other
    few = take(facts.batch, torch.tensor([0, other]))
    yield Branch("2 samples", facts.setup, batch=few, count=2, control=True)
