"""Match: how what a loader delivers becomes the variables that a step begins with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from holter.scripts.recognition.kinds import PLAIN, dense


@dataclass(frozen=True, eq=False)
class Match:
    """For some variables, which of their tensors is which tensor of a loader's batch."""

    variables: Mapping[str, tuple[tuple[int | None, ...], Any, tuple[Any, ...]]]
    count: int  # how many leaves a batch of the loader has

    @property
    def is_whole(self) -> bool:
        """Whether every tensor of the variables is from the loader."""
        return not any(
            place is None and isinstance(was, Tensor)
            for places, _, were in self.variables.values()
            for place, was in zip(places, were, strict=True)
        )

    def bind(self, delivered: object) -> dict[str, Any]:
        """The variables for another batch; what is not from the loader stays as it was."""
        leaves = pytree.tree_leaves(delivered)
        made = {}
        for name, (places, spec, were) in self.variables.items():
            if any(place is not None for place in places) and len(leaves) != self.count:
                raise ValueError("this loader delivers batches of a different structure")
            now = [
                was if place is None else _like(leaves[place], was)
                for place, was in zip(places, were, strict=True)
            ]
            made[name] = pytree.tree_unflatten(now, spec)
        return made


def match(variables: Mapping[str, Any], delivered: object) -> Match:
    """Find the tensors of a loader's batch in variables."""
    leaves = pytree.tree_leaves(delivered)
    found = {}
    for name, value in variables.items():
        own, spec = pytree.tree_flatten(value)
        found[name] = (tuple(_place(each, leaves) for each in own), spec, tuple(own))
    return Match(found, len(leaves))


def _place(value: object, leaves: list[Any]) -> int | None:
    if not isinstance(value, Tensor):
        same = [place for place, each in enumerate(leaves) if each is value]
        return same[0] if same and not isinstance(value, PLAIN) else None
    for place, each in enumerate(leaves):
        if isinstance(each, Tensor) and each.shape == value.shape and _same(each, value):
            return place
    return None


def _same(one: Tensor, other: Tensor) -> bool:
    if one is other:
        return True
    if one.dtype != other.dtype or one.layout != other.layout:
        return False
    one, other = dense(one), dense(other)
    if one.data_ptr() == other.data_ptr() and one.stride() == other.stride():
        return True
    near = other.detach().to(one.device)
    if one.is_floating_point():
        return torch.allclose(one, near, rtol=0, atol=0, equal_nan=True)
    return torch.equal(one, near)


def _like(value: Any, was: Any) -> Any:
    return value.to(was.device) if isinstance(value, Tensor) else value
