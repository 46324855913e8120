"""The scores that a loss function is given: how they are made of what a model returns."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from holter.lab.batches import leaves, tensors

Arrange = Callable[[Tensor], Tensor]


def scores_of(output: Any, given: Any) -> Callable[[Any], Tensor] | None:
    """Return how the loss function's input is made of what a model returns; None if otherwise."""
    found = _found(output, given)
    return None if found is None else partial(_arranged, *found)


def flexible_scores(output: Any, given: Any) -> Callable[[Any], Tensor] | None:
    """Return the same for batches of other sizes; None if otherwise."""
    found = _found(output, given)
    if found is None:
        return None
    place, arrange, shape = found
    own = arrange(tensors(output)[place])

    def scores(output: Any) -> Tensor:
        made = arrange(tensors(output)[place])
        if own.shape == shape:
            return made
        rows = len(made) if len(own) == shape[0] else -1
        return made.reshape(rows, *shape[1:])

    return scores


def scored(output: Any, given: Any) -> str | None:
    """Return the path of the tensor that the loss function's input is made of; None if of none."""
    found = _found(output, given)
    return None if found is None else list(leaves(output))[found[0]]


def _found(output: Any, given: Any) -> tuple[int, Arrange, torch.Size] | None:
    if not isinstance(given, Tensor):
        return None
    for place, made in enumerate(tensors(output)):
        for arrange in (_as_is, _last_second, _time_first):
            try:
                same = torch.equal(arrange(made).reshape(given.shape), given)
            except (RuntimeError, IndexError):
                continue
            if same:
                return place, arrange, given.shape
    return None


def _arranged(place: int, arrange: Arrange, shape: torch.Size, output: Any) -> Tensor:
    return arrange(tensors(output)[place]).reshape(shape)


def _as_is(made: Tensor) -> Tensor:
    return made


def _last_second(made: Tensor) -> Tensor:
    return made.movedim(-1, 1)


def _time_first(made: Tensor) -> Tensor:
    return made.transpose(0, 1)
