"""Compare what the loss is given with what the model returned and with what it was given."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from holter.lab.batches import tensors
from holter.lab.calls import first_loss_call, model_call
from holter.lab.experiments import experiment
from holter.lab.experiments._probing.probe import some_batches
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Setup
from holter.lab.writing import Lab
from holter.record.signals import (
    PAIRING_NOISE_ALIKE,
    PAIRING_NOISE_WHITE,
    PAIRING_ORDER,
    PAIRING_ROWS,
    PAIRING_SHIFT,
)

_FUNCTIONS = ("cross_entropy", "nll_loss")
_SHIFTS = (1, 0, 2, -1, 3, -2, 4)  # in the order in which they are believed
_AGREE = 0.99  # share of the targets that have to be equal
_SHORTEST, _FEWEST = 6, 3  # positions, and different values, that tell a shift
_SAMPLES, _VALUES = 4, 64  # samples, and values of each, that tell whether noise is the same
_NEIGHBOURS = 3  # pairs of neighbours along a dimension that are needed
_NOTICEABLE = 0.02  # deviation of noise in deviations of the inputs; less is rounding


@experiment(
    emits=(PAIRING_ROWS, PAIRING_SHIFT, PAIRING_ORDER, PAIRING_NOISE_ALIKE, PAIRING_NOISE_WHITE),
    preflight=True,
)
def pairing(setup: Setup, lab: Lab) -> None:
    """Do predictions and targets belong to each other?

    For cross-entropies it looks up the scores of each prediction in what the model returned: they
    must be the scores of one place. If the targets are the inputs of other positions, it finds out
    by how many positions they are shifted, and whether they are in the order of the predictions.
    Where the targets have the shape of the inputs, it measures whether the noise between the two is
    the same in all samples.
    """
    (batch,) = some_batches(setup, 1)
    try:
        made, call = model_call(setup, batch), first_loss_call(setup, batch)
    except RuntimeError as error:  # a step that takes gradients itself
        raise InapplicableError("the step cannot be made without gradients") from error
    if call is None:
        raise InapplicableError("the loss is not a cross-entropy of torch")
    measure(lab, (made.args, made.kwargs), made.output, call.function, call.arguments)


def measure(lab: Lab, given: Any, output: Any, function: str, arguments: Mapping[str, Any]) -> None:
    """Write down how the arguments of a loss function lie in what the model got and returned."""
    scores, targets = arguments.get("input"), arguments.get("target")
    if isinstance(targets, Tensor) and targets.is_floating_point() and _noise(lab, given, targets):
        return
    if function not in _FUNCTIONS or not isinstance(scores, Tensor) or scores.dim() < 2:
        raise InapplicableError("the loss is not a cross-entropy of torch")
    if not isinstance(targets, Tensor) or targets.is_floating_point():
        raise InapplicableError("the targets are not classes")
    leading = _arranged(lab, scores, output)
    for each in tensors(given):
        if not each.is_floating_point() and each.dim() == 2:
            _shifted(lab, each, targets, leading)
            return


def _arranged(lab: Lab, scores: Tensor, output: Any) -> tuple[int, ...] | None:
    """Find the rows of scores in what the model returned; the dimensions that they are in."""
    classes = scores.shape[1]
    rows = scores.movedim(1, -1).reshape(-1, classes)
    for made in tensors(output):
        if made.numel() != scores.numel() or not made.is_floating_point():
            continue
        if made.shape == scores.shape:
            lab.write(PAIRING_ROWS, [1.0])
            return tuple(made.shape[:-1]) if made.shape[-1] == classes else None
        if made.shape[-1] != classes:
            continue
        for leading in _orders(made):
            if torch.equal(leading.reshape(-1, classes), rows):
                lab.write(PAIRING_ROWS, [1.0])
                return tuple(leading.shape[:-1])
        if torch.equal(made.flatten(), scores.flatten()):  # the same numbers, cut up otherwise
            own = (made.reshape(-1, classes) == rows).all(1)
            lab.write(PAIRING_ROWS, [float(own.float().mean())])
        return None
    return None


def _orders(made: Tensor) -> Iterator[Tensor]:
    yield made
    if made.dim() == 3:
        yield made.transpose(0, 1)


def _shifted(lab: Lab, values: Tensor, targets: Tensor, leading: tuple[int, ...] | None) -> None:
    """Find out by how many positions the targets follow the inputs, and in which order."""
    if targets.numel() != values.numel() or len(torch.unique(values)) < _FEWEST:
        return
    count, other = values.shape
    for dim in (1, 0):
        if values.shape[dim] < _SHORTEST:
            continue
        for transposed in (False, True):
            wanted = (
                targets.reshape(other, count).t() if transposed else targets.reshape(count, other)
            )
            shift = _shift(values, wanted, dim)
            if shift is None:
                continue
            lab.write(PAIRING_SHIFT, [float(shift)])
            if leading is not None and count != other and set(leading) == {count, other}:
                ordered = leading == ((other, count) if transposed else (count, other))
                lab.write(PAIRING_ORDER, [float(ordered)])
            return


def _shift(values: Tensor, targets: Tensor, dim: int) -> int | None:
    """By how many positions targets follow values; None if by none that is tried."""
    length = values.shape[dim]
    for shift in _SHIFTS:
        kept = length - abs(shift)
        wanted = targets.narrow(dim, max(-shift, 0), kept)
        counted = wanted >= 0
        agree = wanted == values.narrow(dim, max(shift, 0), kept)
        if bool(counted.any()) and float(agree[counted].float().mean()) >= _AGREE:
            return shift
    return None


def _noise(lab: Lab, given: Any, targets: Tensor) -> bool:
    """Measure the noise between inputs and targets of one shape; whether there are any."""
    for each in tensors(given):
        if each.shape != targets.shape or not each.is_floating_point():
            continue
        if targets.dim() < 2 or len(targets) < _SAMPLES or targets[0].numel() < _VALUES:
            continue
        inputs, wanted = (tensor.detach().cpu().double() for tensor in (each, targets))
        noise = inputs - wanted
        if float(noise.std()) > _NOTICEABLE * float(inputs.std()):
            lab.write(PAIRING_NOISE_ALIKE, [_alike(noise.flatten(1))])
            lab.write(PAIRING_NOISE_WHITE, [_smooth(noise)])
        return True
    return False


def _alike(rows: Tensor) -> float:
    """The median correlation of each sample with the next."""
    centred = rows - rows.mean(1, keepdim=True)
    unit = centred / centred.norm(dim=1, keepdim=True).clamp(min=1e-30)
    return float((unit * unit.roll(1, 0)).sum(1).median())


def _smooth(values: Tensor) -> float:
    """The largest correlation of neighbouring values along a dimension other than of samples."""
    centred = values - values.mean()
    found = []
    for dim in range(1, values.dim()):
        count = values.shape[dim] - 1
        if count >= _NEIGHBOURS:
            first, second = (centred.narrow(dim, at, count).flatten() for at in (0, 1))
            found.append(float((first @ second) / (first.norm() * second.norm()).clamp(min=1e-30)))
    return max(found, key=abs, default=1.0)
