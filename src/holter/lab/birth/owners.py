"""Owners: whose a storage is, of the tensors that were there before a step."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from holter.watching.collectors.naming import named_parameters, unwrapped

# Memory is what was allocated, and filled by nobody that was seen.
Role = Literal["parameter", "buffer", "state", "input", "constant", "memory"]


@dataclass(frozen=True, slots=True)
class Owner:
    """What a tensor is to the training, and its name."""

    role: Role
    name: str
    module: str = ""


def identity(tensor: Tensor) -> int:
    """The identity of the memory that a tensor is kept in; views share it."""
    storage = elements(tensor).untyped_storage()
    return int(storage._cdata)  # noqa: SLF001  (there is no public way)


def elements(tensor: Tensor) -> Tensor:
    """The tensor itself, or the elements that a sparse one keeps."""
    return tensor._values() if tensor.layout is torch.sparse_coo else tensor  # noqa: SLF001


def owners(models: Mapping[str, nn.Module], optimizers: Sequence[Optimizer]) -> dict[int, Owner]:
    """The owners of all storages of models and optimizers."""
    return {identity(each): owner for owner, each in owned(models, optimizers)}


def owned(
    models: Mapping[str, nn.Module], optimizers: Sequence[Optimizer]
) -> Iterator[tuple[Owner, Tensor]]:
    """All tensors of models and optimizers, each with its owner."""
    known: dict[int, Owner] = {}
    for label, model in models.items():
        prefix = f"{label}." if label else ""
        inner = unwrapped(model)
        top = label or type(inner).__name__
        for name, buffer in inner.named_buffers():
            plain = prefix + name.replace("_orig_mod.", "")
            yield Owner("buffer", plain, plain.rpartition(".")[0] or top), buffer
        for name, parameter in named_parameters(model):
            owner = Owner("parameter", prefix + name, (prefix + name).rpartition(".")[0] or top)
            known[id(parameter)] = owner
            yield owner, parameter
    for optimizer in optimizers:
        held = (each for group in optimizer.param_groups for each in group["params"])
        for number, parameter in enumerate(held):
            unnamed = Owner("parameter", f"parameter {number} of {type(optimizer).__name__}")
            owner = known.get(id(parameter), unnamed)
            if owner is unnamed:
                yield owner, parameter
            for key, value in optimizer.state.get(parameter, {}).items():
                if isinstance(value, Tensor):
                    yield Owner("state", f"{key} of {owner.name}", owner.module), value
