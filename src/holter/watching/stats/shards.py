"""What this process holds of tensors that are spread over several."""

import sys
from collections.abc import Sequence
from typing import Any

from torch import Tensor


def local(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """The same tensors, of each DTensor the shard that is here: reading the whole would talk."""
    distributed = sys.modules.get("torch.distributed.tensor")  # not imported: there are none
    if distributed is None:
        return tensors
    kind = distributed.DTensor
    return [tensor.to_local() if isinstance(tensor, kind) else tensor for tensor in tensors]


def whole(tensor: Tensor) -> Tensor | None:
    """Return what this process holds of a tensor, if that is all of it, or None."""
    distributed = sys.modules.get("torch.distributed.tensor")
    if distributed is None or not isinstance(tensor, distributed.DTensor):
        return tensor
    sharded: Any = tensor  # of a class without types
    return sharded.to_local() if all(each.is_replicate() for each in sharded.placements) else None
