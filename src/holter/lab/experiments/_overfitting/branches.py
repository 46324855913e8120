"""One thing changed at a time: what may make a model fit samples that it does not fit as it is."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim import Optimizer

from holter.lab.batches import take
from holter.lab.calls import LossEvaluation, predictions_replaced, targets_replaced
from holter.lab.experiments._overfitting.changes import (
    decay_off,
    drawn_anew,
    groups,
    in_mode,
    is_data,
    left_out,
    logits,
    noise,
    other_inputs,
    scaled,
    scaled_rates,
    shaped,
    standardised,
    thawed,
)
from holter.lab.experiments._overfitting.quieting import dropout_off
from holter.lab.setup import Batch, Setup

_SURE = 1e-3  # how near to 1 probabilities add up
_NUMBERS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_LOWER, _HIGHER = (0.1, 0.01, 0.001), (10.0, 100.0, 1000.0, 10000.0)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a training step when it is asked what else could be tried."""

    setup: Setup
    batch: Batch
    count: int  # samples
    calls: tuple[LossEvaluation, ...]  # of loss functions, in one pass
    calls_after: tuple[LossEvaluation, ...]  # the same after training
    inputs: tuple[Tensor, ...]  # of the model
    outputs: tuple[Any, ...]  # of each call of it
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


def _of_predictions(facts: Facts) -> Iterator[Branch]:
    if len(facts.calls) != 1 or "input" not in facts.calls[0].arguments:
        return
    call, setup = facts.calls[0], facts.setup
    if are_probabilities(call) and all(map(are_probabilities, facts.calls_after)):
        during = partial(predictions_replaced, logits)
        yield Branch("logits in place of probabilities", setup, during)
    given, target = call.arguments["input"], call.arguments.get("target")
    broadcast = (
        call.function in _NUMBERS
        and isinstance(target, Tensor)
        and given.shape != target.shape
        and given.numel() == target.numel()
    )
    if broadcast:
        during = partial(predictions_replaced, shaped)
        yield Branch("predictions in the shape of the targets", setup, during)


def are_probabilities(call: LossEvaluation) -> bool:
    """Whether a loss function that applies a softmax or sigmoid is given the result of one."""
    given = call.arguments["input"].detach().float()
    if call.function not in ("cross_entropy", "binary_cross_entropy_with_logits"):
        return False
    if not bool(((given >= 0) & (given <= 1)).all()):
        return False
    sums = given.sum(1 if given.dim() > 1 else 0)
    return call.function != "cross_entropy" or bool(((sums - 1).abs() < _SURE).all())


def _of_last_layers(facts: Facts) -> Iterator[Branch]:
    for layer in facts.last_layers:
        name = f"the last {type(layer).__name__} left out"
        yield Branch(name, facts.setup, partial(left_out, layer))


def _of_regularisation(facts: Facts) -> Iterator[Branch]:
    setup, phase = facts.setup, facts.setup.phases[0]
    if facts.drops:
        yield Branch("dropout off", setup, partial(dropout_off, setup))
    if facts.noisy:
        yield Branch("same random numbers in every step", setup, same_numbers=True)
    if phase.max_norm is not None:
        yield Branch("clipping off", replace(setup, phases=(replace(phase, max_norm=None),)))
    if any(group.get("weight_decay") for group in groups(setup)):
        yield Branch("weight decay off", setup, partial(decay_off, setup))


def _of_rates(facts: Facts) -> Iterator[Branch]:
    for factor in (*_LOWER, *_HIGHER[:1]) if facts.diverged else (*_HIGHER, *_LOWER[:1]):
        during = partial(scaled_rates, facts.setup, factor)
        yield Branch(f"learning rate x {factor:g}", facts.setup, during, factor)


def _of_batch_norm(setup: Setup) -> Iterator[Branch]:
    modules = [each for model in setup.models.values() for each in model.modules()]
    layers = [e for e in modules if isinstance(e, _BatchNorm) and e.running_mean is not None]
    if layers:
        training = any(each.training for each in layers)
        mode = "eval" if training else "training"
        yield Branch(f"batch norm in {mode} mode", setup, partial(in_mode, layers, not training))


def _of_optimizers(setup: Setup) -> Iterator[Branch]:
    parameters = [each for model in setup.models.values() for each in model.parameters()]
    trainable = [each for each in parameters if each.requires_grad]
    able = [each for each in parameters if each.is_floating_point()]
    if trainable:
        yield Branch("Adam on all trainable parameters", _with_adam(setup, trainable))
    if len(able) > len(trainable):
        yield Branch("Adam with nothing frozen", _with_adam(setup, able), partial(thawed, able))


def _with_adam(setup: Setup, parameters: list[nn.Parameter]) -> Setup:
    adam = torch.optim.Adam(parameters, lr=1e-3)
    return replace(setup, phases=(replace(setup.phases[0], optimizers=(adam,), max_norm=None),))


def _of_weights(setup: Setup) -> Branch:
    return Branch("weights drawn anew", setup, partial(drawn_anew, setup))


def _of_inputs(facts: Facts) -> Iterator[Branch]:
    if len(facts.outputs) != 1:  # inputs of several calls belong together
        return
    if not any(is_data(each, facts.count) for each in facts.inputs):
        return
    for name, change in (
        ("inputs standardised", standardised),
        ("inputs replaced by noise", noise),
    ):
        yield Branch(
            name, facts.setup, partial(other_inputs, facts.setup.model, facts.count, change)
        )


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
    during = partial(scaled, facts.setup.model, scale, shift, unit)
    yield Branch("outputs scaled and shifted", replace(facts.setup, phases=(phase,)), during)


def _of_fewer(facts: Facts) -> Iterator[Branch]:
    if facts.count < 3:
        return
    other = facts.count - 1
    if facts.target is not None:
        differs = (facts.target != facts.target[:1]).reshape(facts.count, -1).any(1)
        other = int(differs.int().argmax()) or other
    few = take(facts.batch, torch.tensor([0, other]))
    yield Branch("2 samples", facts.setup, batch=few, count=2, control=True)
