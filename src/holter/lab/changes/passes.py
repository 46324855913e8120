"""Forward passes: other inputs, outputs, labels or predictions, and the same random numbers."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from holter.lab.batches import changed
from holter.lab.calls import inputs_replaced, predictions_replaced, targets_replaced
from holter.lab.changes import Altered, Change, TappedChange
from holter.lab.randomness import same_randomness
from holter.lab.setup import Batch, LossPhase, Setup
from holter.record.trials import TrialKind, TrialName

_ROUNDED = 1e-3  # deviation from 1 that is rounding
_OUTPUT_RATE = 0.03  # of Adam, for the scale and the shift of outputs


@contextmanager
def _same_numbers(setup: Setup) -> Iterator[Setup]:
    def repeated(phase: LossPhase) -> LossPhase:
        def loss(batch: Batch) -> Tensor:
            with same_randomness(setup):
                return phase.loss(batch)

        return replace(phase, loss=loss)

    yield replace(setup, phases=tuple(map(repeated, setup.phases)))


def _predicted(
    change: Callable[[str, Any], Tensor], altered: Altered
) -> AbstractContextManager[None]:
    def replaced(function: str, arguments: Any) -> Tensor:
        own = arguments.get("input")
        made = change(function, arguments) if isinstance(own, Tensor) else own
        if made is not own:
            altered()
        return made

    return predictions_replaced(replaced)


def _logits(function: str, arguments: Any) -> Tensor:
    given: Tensor = arguments["input"]
    if function == "cross_entropy" and _sums_to_one(given, given):
        return given.clamp_min(torch.finfo(given.dtype).tiny).log()
    if function == "binary_cross_entropy_with_logits" and _is_share(given):
        return torch.logit(given, 1e-6)
    return given


def _log_probabilities(function: str, arguments: Any) -> Tensor:
    given: Tensor = arguments["input"]
    if function != "nll_loss" or _sums_to_one(given.exp(), given):
        return given
    return given.log_softmax(1 if given.dim() > 1 else 0)


def _is_share(values: Tensor) -> bool:
    return bool(((values >= 0) & (values <= 1)).all())


def _sums_to_one(shares: Tensor, of: Tensor) -> bool:
    """Whether the values of each sample are those of a distribution over classes."""
    total = shares.detach().sum(1 if of.dim() > 1 else 0)
    return _is_share(shares.detach()) and bool(((total - 1).abs() < _ROUNDED).all())


def _shaped(_: str, arguments: Any) -> Tensor:
    given: Tensor = arguments["input"]
    target = arguments.get("target")
    floating = isinstance(target, Tensor) and target.is_floating_point()
    if not floating or given.shape == target.shape or given.numel() != target.numel():
        return given
    shaped: Tensor = given.reshape(target.shape)
    return shaped


@contextmanager
def _rolled(setup: Setup) -> Iterator[Setup]:
    with targets_replaced(lambda _, target: target.roll(1, 0)):
        yield setup


SAME_RANDOM_NUMBERS = Change(
    TrialName(TrialKind.SAME_RANDOM_NUMBERS),
    "Draw the same random numbers in every forward pass.",
    _same_numbers,
)
LOGITS = TappedChange(
    TrialName(TrialKind.LOGITS),
    "Give the loss function the logits of the probabilities that it is given.",
    partial(_predicted, _logits),
)
LOG_PROBABILITIES = TappedChange(
    TrialName(TrialKind.LOG_PROBABILITIES),
    "Give the negative log-likelihood the log-softmax of what it is given.",
    partial(_predicted, _log_probabilities),
)
TARGET_SHAPE = TappedChange(
    TrialName(TrialKind.TARGET_SHAPE),
    "Reshape predictions to the shape of the targets.",
    partial(_predicted, _shaped),
)
ROLLED_LABELS = Change(
    TrialName(TrialKind.ROLLED_LABELS), "Give each sample the label of the one before.", _rolled
)


def layer_left_out(layer: nn.Module) -> Change:
    """Let a layer return its input."""
    name = type(layer).__name__
    return Change(
        TrialName(TrialKind.LAYER_LEFT_OUT, name),
        f"Leave out the last {name}.",
        partial(_left_out, layer),
    )


@contextmanager
def _left_out(layer: nn.Module, setup: Setup) -> Iterator[Setup]:
    hook = layer.register_forward_hook(lambda _, inputs, __: inputs[0])
    try:
        yield setup
    finally:
        hook.remove()


def standardised_inputs(count: int) -> Change:
    """Standardise the model's inputs over `count` samples."""
    return Change(
        TrialName(TrialKind.STANDARDISED_INPUTS),
        "Standardise each input feature over the samples.",
        partial(_with_inputs, _standardised, count),
    )


def noise_inputs(count: int) -> Change:
    """Replace the model's inputs of `count` samples by noise."""
    return Change(
        TrialName(TrialKind.NOISE_INPUTS),
        "Replace the inputs by standard normal noise, the same in every step.",
        partial(_with_inputs, _noise, count),
    )


@contextmanager
def _with_inputs(change: Callable[[Tensor], Tensor], count: int, setup: Setup) -> Iterator[Setup]:
    def of_data(tensor: Tensor) -> Tensor:
        return change(tensor) if is_data(tensor, count) else tensor

    with inputs_replaced(
        setup.entry, lambda args, kwargs: (changed(args, of_data), changed(kwargs, of_data))
    ):
        yield setup


def is_data(tensor: Tensor, count: int) -> bool:
    """Whether a tensor holds numbers of each of `count` samples, and is no mask."""
    if not tensor.is_floating_point() or not tensor.dim() or len(tensor) != count:
        return False
    values = tensor.detach()
    return bool(values.isfinite().all() and ((values != 0) & (values != 1)).any())


def _standardised(values: Tensor) -> Tensor:
    spread = values.std(0, correction=0)
    return (values - values.mean(0)) / torch.where(spread > 0, spread, 1.0)


def _noise(values: Tensor) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(values.shape, generator=generator).to(values)


def rescaled_outputs(scale: Tensor, shift: Tensor, *, unit: float = 1.0) -> Change:
    """Scale and shift the model's outputs by values that are trained along, from these on."""
    return Change(
        TrialName(TrialKind.RESCALED_OUTPUTS),
        "Scale and shift the outputs by trainable values, the same for all samples.",
        partial(_rescaled, scale, shift, unit),
    )


@contextmanager
def _rescaled(scale: Tensor, shift: Tensor, unit: float, setup: Setup) -> Iterator[Setup]:
    scale, shift = (each.detach().clone().requires_grad_() for each in (scale, shift))
    extra: Optimizer = torch.optim.Adam([scale, shift], lr=_OUTPUT_RATE)
    hook = setup.entry.register_forward_hook(
        lambda _, __, output: output * scale.to(output.dtype) + unit * shift.to(output.dtype)
    )
    phase = setup.phases[0]
    try:
        yield replace(setup, phases=(replace(phase, optimizers=(*phase.optimizers, extra)),))
    finally:
        hook.remove()
