"""Match: how what a loader delivers becomes the variables that a step begins with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree


@dataclass(frozen=True, eq=False)
class Match:
    """For some variables, which of their tensors is which tensor of a loader's batch."""

    variables: Mapping[str, tuple[tuple[int | None, ...], Any, tuple[Any, ...]]]
    count: int  # how many leaves a batch of the loader has

    def bind(self, delivered: object) -> dict[str, Any]:
        """The variables for another batch; what is not from the loader stays as it was."""
        leaves = pytree.tree_leaves(delivered)
        if len(leaves) != self.count:
            raise ValueError("this loader delivers another kind of batch")
        made = {}
        for name, (places, spec, were) in self.variables.items():
            now = [
                was if place is None else _like(leaves[place], was)
                for place, was in zip(places, were, strict=True)
            ]
            made[name] = pytree.tree_unflatten(now, spec)
        return made


def match(variables: Mapping[str, Any], delivered: object) -> Match | None:
    """Find the tensors of a loader's batch in variables; None if there are none of them."""
    leaves = pytree.tree_leaves(delivered)
    found = {}
    some = False
    for name, value in variables.items():
        own, spec = pytree.tree_flatten(value)
        places = tuple(_place(each, leaves) for each in own)
        some = some or any(each is not None for each in places)
        found[name] = (places, spec, tuple(own))
    return Match(found, len(leaves)) if some else None


def _place(value: object, leaves: list[Any]) -> int | None:
    if not isinstance(value, Tensor):
        return None
    for place, each in enumerate(leaves):
        if isinstance(each, Tensor) and each.shape == value.shape and _same(each, value):
            return place
    return None


def _same(one: Tensor, other: Tensor) -> bool:
    if one is other or (one.data_ptr() == other.data_ptr() and one.stride() == other.stride()):
        return True
    if one.dtype != other.dtype:
        return False
    near = other.detach().to(one.device)
    if one.is_floating_point():
        return torch.allclose(one, near, rtol=0, atol=0, equal_nan=True)
    return torch.equal(one, near)


def _like(value: Any, was: Any) -> Any:
    return value.to(was.device) if isinstance(value, Tensor) else value
