"""Units: the outputs of a model that predict one number, or one yes or no, for each sample."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from holter.record.events import MOST_CLASSES
from holter.watching.collectors.loss_calls import LIMIT, Given

_EVERY = 3


def units_of(call: Given) -> int:
    """Return the size of the second axis, or 1 where it is too large to tell units apart."""
    shape = call.prediction.shape
    return shape[1] if len(shape) > 1 and shape[1] <= MOST_CLASSES else 1


def by_unit(columns: Sequence[Tensor], units: int) -> Tensor:
    """Return columns of equal shape as one tensor: column, sample, unit, place in the unit."""
    shape = columns[0].shape
    inner = shape[2:].numel() if units > 1 else 1
    return torch.stack(tuple(columns)).reshape(len(columns), -1, units, inner)


def thinned(call: Given, units: int) -> Given:
    """Return a regular subset of samples and places of large predictions, with all units."""
    prediction, target = call.prediction, call.target
    axes = [axis for axis in range(prediction.dim()) if axis != 1 or units == 1]
    while prediction.numel() > LIMIT:
        longest = max(axes, key=prediction.shape.__getitem__)
        if prediction.shape[longest] < _EVERY:
            break
        step = (slice(None),) * longest + (slice(None, None, _EVERY),)
        prediction, target = prediction[step], target[step]
    return replace(call, prediction=prediction, target=target)
