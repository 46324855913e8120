"""Which variables of the script were not finite when an exception ended the training."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from holter.record.events import VariablesNonfinite
from holter.watching.frames import Frames, place

_NAMED = 8  # variables that are recorded
_LARGEST = 1 << 26  # elements that are read


def spoiled(error: BaseException) -> VariablesNonfinite | None:
    """Return the tensors with NaN or infinity around the line that raised, or None without any.

    They are the variables of the innermost function of the script, in the order in which they were
    first assigned. Masks hold negative infinity, which does not count.
    """
    frames, trace = Frames(), error.__traceback__
    innermost = None
    while trace is not None:
        if frames.is_script(trace.tb_frame):
            innermost = trace
        trace = trace.tb_next
    if innermost is None:
        return None
    names = frames.read(innermost.tb_frame, _nonfinite)
    where = place(innermost.tb_frame, innermost.tb_lineno)
    return VariablesNonfinite(tuple(names[:_NAMED]), where) if names else None


def _nonfinite(variables: Mapping[str, Any]) -> list[str]:
    return [name for name, value in list(variables.items()) if _is_spoiled(value)]


def _is_spoiled(value: Any) -> bool:
    if type(value) is not Tensor or not value.is_floating_point():
        return False
    if value.layout is not torch.strided or value.is_meta or not 0 < value.numel() <= _LARGEST:
        return False
    with torch.no_grad():
        return bool((value.isnan() | value.isposinf()).any())
