"""Features of single samples by which errors are grouped: length, brightness, columns."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

_COLUMNS = 64  # of a table that are looked at

Values = npt.NDArray[np.float64]


def features_of(inputs: list[Tensor], count: int) -> dict[str, Values]:
    """Return what is known of each sample by what the model is called with."""
    own = [tensor for tensor in inputs if tensor.dim() > 1 and len(tensor) == count]
    found: dict[str, Values] = {}
    for tensor in own:
        if tensor.is_floating_point() and tensor.dim() == 2 and tensor.shape[1] <= _COLUMNS:
            for place, column in enumerate(tensor.unbind(1)):
                found.setdefault(f"column {place}", _host(column))
        if tensor.is_floating_point() and tensor.dim() == 4:
            found.setdefault("brightness", _host(tensor.flatten(1).mean(1)))
    if (lengths := _lengths(own)) is not None:
        found["length"] = _host(lengths)
    return found


def _lengths(own: list[Tensor]) -> Tensor | None:
    """Return the lengths of sequences: by a mask, or without zeros at their ends."""
    rows = [tensor for tensor in own if tensor.dim() == 2 and not tensor.is_floating_point()]
    masks = [tensor for tensor in rows if tensor.dtype is torch.bool or _is_mask(tensor)]
    if masks:
        return masks[0].long().sum(1)
    steps = [tensor for tensor in own if tensor.is_floating_point() and tensor.dim() == 3]
    used = [tensor != 0 for tensor in rows] + [(tensor != 0).any(2) for tensor in steps]
    if not used:
        return None
    # The last step that is not empty: a running maximum from behind.
    filled = used[0].flip(1).long().cummax(1).values.sum(1)
    return filled if bool((filled != filled[0]).any()) else None


def _is_mask(tensor: Tensor) -> bool:
    least, largest = torch.aminmax(tensor)
    return bool(least >= 0) and bool(largest == 1)


def _host(tensor: Tensor) -> Values:
    found: Values = tensor.detach().double().cpu().numpy()
    return found
