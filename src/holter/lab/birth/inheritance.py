"""Inheritance: what of an output that is not finite was so in the operands already."""

from collections.abc import Mapping

import torch
from torch import Tensor

from holter.lab.birth.calls import Call
from holter.lab.birth.operations import OVERWRITES
from holter.lab.birth.values import Extent, bad, extent, fits

_Wrong = tuple[Tensor, Tensor, Extent]  # an operand, what it was before, and its range


def inherited(
    call: Call, output: Tensor, before: Mapping[int, Tensor]
) -> tuple[list[_Wrong], Tensor | None]:
    """The operands by which an output is not finite; and where it is so without them, if known."""
    found: list[_Wrong] = []
    wrong = bad(output)
    known = torch.zeros_like(wrong)
    traced = True  # whether each element of the output is known to come from certain ones
    for place, tensor in enumerate(call.tensors):
        was = before.get(id(tensor), tensor)
        if call.name in OVERWRITES and place == 0 and call.changed:
            continue
        its = extent(was)
        if its is None:
            continue
        marked = _heirs(call, place, was, output)
        if marked is None:
            traced = False
        elif not (marked & wrong).any():
            continue  # it was masked, or has become finite
        else:
            known = known | marked
        found.append((tensor, was, its))
    news = wrong & ~known
    return found, news if found and traced and bool(news.any()) else None


def _heirs(call: Call, place: int, was: Tensor, output: Tensor) -> Tensor | None:
    """The elements of an output that come from elements which were not finite; None if unknown."""
    marked, tensors = bad(was), call.tensors
    if call.name == "where" and len(tensors) == 3 and place:
        marked = marked & (tensors[0] if place == 1 else ~tensors[0])
    elif call.name == "masked_fill":
        marked = marked & (tensors[1] if place else ~tensors[1])
    elif any(each is tensors[place] for each in call.changed):
        pass  # what is changed in place stays where it is
    elif torch.Tag.pointwise not in call.func.tags:
        return None
    return marked.expand(output.shape) if fits(marked.shape, output.shape) else None
