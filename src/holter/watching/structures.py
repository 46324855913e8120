"""Structures that hold tensors: tuples, mappings, dataclasses, and what libraries call a batch."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.optim import Optimizer
from torch.utils.data import DataLoader, Dataset


def parts(value: Any) -> Iterator[tuple[Any, str, Any]] | None:
    """Return the key, the step of the path and the value of each part; None for a leaf.

    A packed sequence is a leaf: its tensors make sense together only.
    """
    if isinstance(value, Tensor | PackedSequence | nn.Module | type):
        return None
    if isinstance(value, Mapping):
        return ((key, f"[{key!r}]", value[key]) for key in value)
    if isinstance(value, list | tuple):
        return ((place, f"[{place}]", part) for place, part in enumerate(value))
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
        return ((name, f".{name}", getattr(value, name)) for name in names)
    if _is_batch(value):
        return ((name, f".{name}", part) for name, part in vars(value).items())
    return None


def _is_batch(value: Any) -> bool:
    """Whether an object is made to hold tensors: among its attributes, or it can be moved."""
    if not hasattr(value, "__dict__") or isinstance(value, Optimizer | Dataset | DataLoader):
        return False
    if type(value).__module__.partition(".")[0] == "torch":  # distributions, generators, graphs
        return False
    if any(isinstance(part, Tensor) for part in vars(value).values()):
        return True
    return any(callable(getattr(value, name, None)) for name in ("to", "pin_memory"))
