"""What this process holds of tensors that are spread over several."""

import sys
from collections.abc import Sequence

from torch import Tensor


def local(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """The same tensors, of each DTensor the shard that is here: reading the whole would talk."""
    distributed = sys.modules.get("torch.distributed.tensor")  # not imported: there are none
    if distributed is None:
        return tensors
    kind = distributed.DTensor
    return [tensor.to_local() if isinstance(tensor, kind) else tensor for tensor in tensors]
