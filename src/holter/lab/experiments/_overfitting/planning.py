"""One change at a time: what may make a model fit samples that it does not fit unchanged."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from holter.lab.batches import take
from holter.lab.calls import LossEvaluation
from holter.lab.changes import UNCHANGED, Change
from holter.lab.changes.clipping import CLIPPING_OFF
from holter.lab.changes.dropout import DROPOUT_OFF
from holter.lab.changes.learning_rate import groups_of, learning_rate_times
from holter.lab.changes.modes import batch_norm_mode, batch_norms
from holter.lab.changes.optimizer import NO_WEIGHT_DECAY, adam, parameters_of
from holter.lab.changes.passes import (
    LOGITS,
    ROLLED_LABELS,
    SAME_RANDOM_NUMBERS,
    TARGET_SHAPE,
    is_data,
    layer_left_out,
    noise_inputs,
    rescaled_outputs,
    standardised_inputs,
)
from holter.lab.changes.weights import REINITIALISED
from holter.lab.setup import Batch, Setup
from holter.record.trials import TrialKind, TrialName

_SURE = 1e-3  # how near to 1 probabilities add up
_NUMBERS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_LOWER, _HIGHER = (0.1, 0.01, 0.001), (10.0, 100.0, 1000.0, 10000.0)


@dataclass(frozen=True, slots=True)
class StepTraits:
    """What one trial has shown of a training step, by which the next ones are planned."""

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
    falls: bool  # whether the loss falls nevertheless
    much: bool  # whether much was learned

    @property
    def target(self) -> Tensor | None:
        """The target of each sample, where the only loss function is told."""
        target = self.calls[0].arguments.get("target") if len(self.calls) == 1 else None
        known = isinstance(target, Tensor) and target.dim() and len(target) == self.count
        return target if known else None


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """A training to try: with which change, and on which samples."""

    change: Change
    factor: float = 1.0  # of the learning rate
    batch: Batch | None = None
    count: int = 0  # of other samples
    control: bool = False  # a comparison: if it fits, that names no cause

    @property
    def name(self) -> str:
        """The name under which its readings are written."""
        return str(self.change.id)


def planned_trials(traits: StepTraits) -> Iterator[PlannedTrial]:
    """Return all that applies, each once, the most informative first."""
    seen = set()
    for trial in _in_order(traits):
        if trial.name not in seen:
            seen.add(trial.name)
            yield trial


def _in_order(traits: StepTraits) -> Iterator[PlannedTrial]:
    yield from _of_predictions(traits)
    yield from _of_last_layers(traits)
    if traits.still:
        yield from _of_optimizers(traits.setup)
    if traits.still or traits.alike:
        yield PlannedTrial(REINITIALISED)
        yield from _of_inputs(traits)
    if traits.falls and traits.alike:
        return
    if not traits.still:
        yield from _of_regularisation(traits)
    yield from _of_batch_norm(traits.setup)
    if not traits.much:
        yield from _of_rates(traits)
        yield from _of_optimizers(traits.setup)
        yield PlannedTrial(REINITIALISED)
        yield from _of_inputs(traits)
        yield from _of_labels(traits)
        yield from _of_outputs(traits)  # after the rates: scaling makes faster too
    yield from _of_fewer(traits)


def _of_predictions(traits: StepTraits) -> Iterator[PlannedTrial]:
    if len(traits.calls) != 1 or "input" not in traits.calls[0].arguments:
        return
    call = traits.calls[0]
    if are_probabilities(call) and all(map(are_probabilities, traits.calls_after)):
        yield PlannedTrial(LOGITS.on_setup)
    given, target = call.arguments["input"], call.arguments.get("target")
    broadcast = (
        call.function in _NUMBERS
        and isinstance(target, Tensor)
        and given.shape != target.shape
        and given.numel() == target.numel()
    )
    if broadcast:
        yield PlannedTrial(TARGET_SHAPE.on_setup)


def are_probabilities(call: LossEvaluation) -> bool:
    """Whether a loss function that applies a softmax or sigmoid is given the result of one."""
    given = call.arguments["input"].detach().float()
    if call.function not in ("cross_entropy", "binary_cross_entropy_with_logits"):
        return False
    if not bool(((given >= 0) & (given <= 1)).all()):
        return False
    sums = given.sum(1 if given.dim() > 1 else 0)
    return call.function != "cross_entropy" or bool(((sums - 1).abs() < _SURE).all())


def _of_last_layers(traits: StepTraits) -> Iterator[PlannedTrial]:
    for layer in traits.last_layers:
        yield PlannedTrial(layer_left_out(layer))


def _of_regularisation(traits: StepTraits) -> Iterator[PlannedTrial]:
    if traits.drops:
        yield PlannedTrial(DROPOUT_OFF.on_setup)
    if traits.noisy:
        yield PlannedTrial(SAME_RANDOM_NUMBERS)
    if traits.setup.phases[0].max_norm is not None:
        yield PlannedTrial(CLIPPING_OFF.on_setup)
    if any(group.get("weight_decay") for group in groups_of(traits.setup)):
        yield PlannedTrial(NO_WEIGHT_DECAY.on_setup)


def _of_rates(traits: StepTraits) -> Iterator[PlannedTrial]:
    for factor in (*_LOWER, *_HIGHER[:1]) if traits.diverged else (*_HIGHER, *_LOWER[:1]):
        yield PlannedTrial(learning_rate_times(factor), factor)


def _of_batch_norm(setup: Setup) -> Iterator[PlannedTrial]:
    if layers := batch_norms(setup):
        training = any(layer.training for layer in layers)
        yield PlannedTrial(batch_norm_mode(training=not training))


def _of_optimizers(setup: Setup) -> Iterator[PlannedTrial]:
    parameters = parameters_of(setup)
    trainable = [parameter for parameter in parameters if parameter.requires_grad]
    able = [parameter for parameter in parameters if parameter.is_floating_point()]
    if trainable:
        yield PlannedTrial(adam())
    if len(able) > len(trainable):
        yield PlannedTrial(adam(nothing_frozen=True))


def _of_inputs(traits: StepTraits) -> Iterator[PlannedTrial]:
    if len(traits.outputs) != 1:  # inputs of several calls belong together
        return
    if any(is_data(tensor, traits.count) for tensor in traits.inputs):
        yield PlannedTrial(standardised_inputs(traits.count))
        yield PlannedTrial(noise_inputs(traits.count))


def _of_labels(traits: StepTraits) -> Iterator[PlannedTrial]:
    target = traits.target
    if target is not None and bool((target != target.roll(1, 0)).any()):
        yield PlannedTrial(ROLLED_LABELS, control=True)


def _of_outputs(traits: StepTraits) -> Iterator[PlannedTrial]:
    """Outputs that may be scaled and shifted, alike for all samples."""
    output = traits.outputs[0] if len(traits.outputs) == 1 else None
    if not isinstance(output, Tensor) or not output.is_floating_point() or not output.dim():
        return
    channel = {1: None, 2: 1, 3: 2}.get(output.dim(), 1)
    shape = [size if dim == channel else 1 for dim, size in enumerate(output.shape)]
    scale = torch.ones(shape, device=output.device)
    shift = torch.zeros(shape, device=output.device)
    unit = 1.0
    target = traits.target
    if target is not None and traits.calls[0].function in _NUMBERS:
        # A head that can only give positive numbers begins at the lowest of the targets.
        unit = max(float(target.float().std(correction=0)), 1e-12)
        scale *= unit / max(float(output.float().std(correction=0)), 1e-6 * unit)
        shift += (float(target.min()) - float(scale.max() * output.float().min())) / unit
    yield PlannedTrial(rescaled_outputs(scale, shift, unit=unit))


def _of_fewer(traits: StepTraits) -> Iterator[PlannedTrial]:
    if traits.count < 3:
        return
    other = traits.count - 1
    if traits.target is not None:
        differs = (traits.target != traits.target[:1]).reshape(traits.count, -1).any(1)
        other = int(differs.int().argmax()) or other
    two = take(traits.batch, torch.tensor([0, other]))
    change = Change(TrialName(TrialKind.TWO_SAMPLES), "Train on 2 samples.", UNCHANGED.applied)
    yield PlannedTrial(change, batch=two, count=2, control=True)
