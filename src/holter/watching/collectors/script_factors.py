"""Numbers that a script multiplies or divides a loss by right before backward()."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

_WHOLE_TYPES = (torch.int64, torch.int32)
_OF_PYTHON = (torch.int64, torch.float64)  # types in which torch keeps a number of Python
_LEAST_SCALE = 8  # from which on a power of two counts as a loss scale
_WHOLE = 1e-6  # relative: closer to a whole number than that, a number is one
_DEEPEST = 2  # operations: a loss may be divided, then scaled
_FACTORS = ("MulBackward0", "DivBackward0")
_MOST = 6  # operations, with those that change nothing: libraries divide by one device or batch


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
    for number in _numbers(root):
        if number >= _LEAST_SCALE and math.log2(number).is_integer():
            scale *= number
        elif 0 < number < 1 and abs(1 / number - round(1 / number)) < _WHOLE / number:
            divisor *= round(1 / number)
    return ScriptFactors(scale, divisor)


def ends_in_factor(root: Tensor) -> bool:
    """Whether the last operation of a loss multiplies or divides it."""
    return type(root.grad_fn).__name__ in _FACTORS


def count_of(root: Tensor) -> Tensor | None:
    """Return the whole number, as a tensor, that a loss was divided by before backward(), or None.

    Its value is not read: it may be on a device.
    """
    for node in _operations(root):
        if type(node).__name__ == "DivBackward0" and _number(node, root.dtype) != 1:
            other = node._saved_other  # noqa: SLF001
            if isinstance(other, Tensor) and not other.dim() and other.dtype in _WHOLE_TYPES:
                return other
    return None


def _numbers(root: Tensor) -> Iterator[float]:
    """Yield the numbers other than 1 of the last operations."""
    count = 0
    for node in _operations(root):
        number = _number(node, root.dtype)
        if number is None:
            return
        if number != 1:
            count += 1
            yield number
        if count == _DEEPEST:
            return


def _operations(root: Tensor) -> Iterator[Any]:
    """Yield the multiplications and divisions that end in the root of a backward pass."""
    node: Any = root.grad_fn
    for _ in range(_MOST):
        if type(node).__name__ not in _FACTORS:
            return
        yield node
        node = node.next_functions[0][0]


def _number(node: Any, dtype: torch.dtype) -> float | None:
    """Return the number of Python by which an operation multiplies, or None."""
    other = node._saved_other  # noqa: SLF001
    if not isinstance(other, Tensor) or other.dim() or not other.is_cpu:
        return None
    if other.dtype not in _OF_PYTHON or other.dtype is dtype or not float(other):
        return None
    return float(other) if type(node).__name__ == "MulBackward0" else 1 / float(other)
