"""Numbers that a script multiplies or divides a loss by right before backward()."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

_OF_PYTHON = (torch.int64, torch.float64)  # types in which torch keeps a number of Python
_LEAST_SCALE = 8  # from which on a power of two counts as a loss scale
_WHOLE = 1e-6  # relative: closer to a whole number than that, a number is one
_DEEPEST = 2  # operations: a loss may be divided, then scaled


class ScriptFactors(NamedTuple):
    """What a loss was multiplied by for half precision, and divided by for accumulation."""

    scale: float = 1.0
    divisor: float = 1.0

    @property
    def undone(self) -> float:
        """What takes the root of a backward pass back to the loss."""
        return self.divisor / self.scale


def script_factors(root: Tensor) -> ScriptFactors:
    """Return the loss scale and the divisor that a script put on a loss itself; 1 where none.

    Only numbers of Python count: a tensor may be a count of targets. A power of two from 8 on is a
    loss scale; another whole number that a loss is divided by is one of batches.
    """
    scale = divisor = 1.0
    node: Any = root.grad_fn
    for _ in range(_DEEPEST):
        number = _number(node, root.dtype)
        if number is None:
            break
        if number >= _LEAST_SCALE and math.log2(number).is_integer():
            scale *= number
        elif 0 < number < 1 and abs(1 / number - round(1 / number)) < _WHOLE / number:
            divisor *= round(1 / number)
        node = node.next_functions[0][0]
    return ScriptFactors(scale, divisor)


def _number(node: Any, dtype: torch.dtype) -> float | None:
    """Return the number of Python by which an operation multiplies, or None."""
    name = type(node).__name__
    if name not in ("MulBackward0", "DivBackward0"):
        return None
    other = node._saved_other  # noqa: SLF001
    if not isinstance(other, Tensor) or other.dim() or not other.is_cpu:
        return None
    if other.dtype not in _OF_PYTHON or other.dtype is dtype or not float(other):
        return None
    return float(other) if name == "MulBackward0" else 1 / float(other)
