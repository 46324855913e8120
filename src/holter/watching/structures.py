"""Structures that hold tensors: tuples, mappings, dataclasses, and what libraries call a batch."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence


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
    # What a library defines for its batches can be moved to a device, or pinned.
    if any(callable(getattr(value, name, None)) for name in ("to", "pin_memory")):
        held = vars(value) if hasattr(value, "__dict__") else {}
        return ((name, f".{name}", part) for name, part in held.items())
    return None
