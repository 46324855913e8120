"""Targets of rows that a script evaluates without a loss function: a variable beside the call."""

import itertools
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from holter.lab.batches import leaves, tensors
from holter.lab.experiments._samples.parts import TARGET_NAMES
from holter.watching.frames import Frames

_NEAREST = 2  # functions of the script that are searched
_MOST = 1 << 20  # elements of a target


class TargetForm(NamedTuple):
    """What the target of the training's loss looks like, and where the model is given it."""

    dtype: torch.dtype
    row: torch.Size  # its shape without the first dimension
    path: str | None  # in the arguments of the model, if they hold it

    def fits(self, value: Any, count: int) -> bool:
        """Whether a value may be the target of so many rows."""
        return (
            isinstance(value, Tensor)
            and value.dim() > 0
            and len(value) == count
            and value.dtype == self.dtype
            and value.shape[1:] == self.row
            and value.numel() <= _MOST
        )


def form_of(target: Any, arguments: Any) -> TargetForm | None:
    """Return the form of a target of the training; `arguments` are those of the model's call."""
    if not isinstance(target, Tensor) or not target.dim():
        return None
    held = leaves(arguments)
    own = [path for path, leaf in held.items() if leaf.data_ptr() == target.data_ptr()]
    return TargetForm(target.dtype, target.shape[1:], own[0] if own else None)


def target_beside(form: TargetForm, arguments: Any, output: Any, frames: Frames) -> Tensor | None:
    """Return the target of rows that a model was called with, if just one variable can be it.

    Where several can, one of them may have the name of a target.
    """
    held = leaves(arguments)
    if form.path is not None:
        return held.get(form.path)
    counts = {len(leaf) for leaf in held.values() if leaf.dim()}
    made = [*held.values(), *tensors(output)]
    for frame in itertools.islice(frames.all(), _NEAREST):
        found: dict[str, Tensor] = {}
        for count in counts:
            found |= frames.read(frame, partial(_fitting, form=form, count=count, others=made))
        named = {name: each for name, each in found.items() if _is_named_so(name)}
        for candidates in (found, named):
            if len({each.data_ptr() for each in candidates.values()}) == 1:
                return next(iter(candidates.values()))
        if found:
            return None
    return None


def _fitting(
    variables: Mapping[str, Any], form: TargetForm, count: int, others: list[Tensor]
) -> dict[str, Tensor]:
    taken = {each.data_ptr() for each in others}
    return {
        name: value
        for name, value in variables.items()
        if form.fits(value, count) and value.data_ptr() not in taken and not value.requires_grad
    }


def _is_named_so(name: str) -> bool:
    low = name.lower()
    return low in TARGET_NAMES or low.startswith(("y_", "label", "target"))
