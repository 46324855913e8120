"""Compare two preprocessing paths on the same raw samples, as training and serving have them."""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from holter.lab.randomness import RandomState

_CLOSE = 1e-5  # relative deviation from one factor, or from one line
_FEWEST = 8  # numbers that show a factor
_SHOWN = 60  # characters of a value that is no array

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two results differ first, and how."""

    sample: int
    path: str  # to the part that differs: `['image']`, `[0]`; empty for the whole result
    what: str  # kind, keys, length, dtype, shape, values
    first: str
    second: str
    hint: str = ""  # what may have caused it

    def __str__(self) -> str:
        place = f"sample {self.sample}{f', {self.path}' if self.path else ''}"
        hint = f"\n  {self.hint}" if self.hint else ""
        return (
            f"{place}: the {self.what} differ{'' if self.what in _PLURAL else 's'}\n"
            f"  first   {self.first}\n  second  {self.second}{hint}"
        )


_PLURAL = ("keys", "values", "kinds")


@dataclass(frozen=True, slots=True)
class PreprocessingComparison:
    """How two preprocessing functions compare; its text is for people."""

    samples: int
    differing: int  # samples
    first_difference: Difference | None
    repeatable: bool = True  # whether a function gives the same result when it is called again

    @property
    def is_same(self) -> bool:
        """Whether both gave the same for every sample."""
        return self.first_difference is None

    def __str__(self) -> str:
        if self.samples == 0:
            return "no samples to compare"
        note = "" if self.repeatable else "\n  a function gives other results when called again"
        if self.first_difference is None:
            return f"both give the same for all {self.samples} samples{note}"
        return f"{self.differing} of {self.samples} samples differ. {self.first_difference}{note}"

    __repr__ = __str__


def compare_preprocessing(
    first: Callable[[Any], Any],
    second: Callable[[Any], Any],
    samples: Iterable[Any],
    *,
    ulps: int = 0,
) -> PreprocessingComparison:
    """Compare what two functions make of the same raw samples, and show the first difference.

    Each gets a copy of a sample, and the same random numbers. Results may be tensors, arrays,
    images, numbers, strings, and lists and mappings of these; tensors and arrays count as the same
    kind. Floating-point numbers that are `ulps` units in the last place apart count as equal.
    """
    before = RandomState.now()
    count = differing = 0
    found: Difference | None = None
    repeatable = True
    try:
        for place, sample in enumerate(samples):
            state = RandomState.now()
            ours = first(copy.deepcopy(sample))
            state.restore()
            theirs = second(copy.deepcopy(sample))
            difference = _compared(ours, theirs, place, "", ulps)
            if place == 0:
                again = first(copy.deepcopy(sample))
                repeatable = _compared(ours, again, place, "", 0) is None
            count += 1
            differing += difference is not None
            found = found or difference
    finally:
        before.restore()
    return PreprocessingComparison(count, differing, found, repeatable)


def _compared(one: Any, other: Any, sample: int, path: str, ulps: int) -> Difference | None:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        if set(one) != set(other):
            keys = (", ".join(map(repr, each)) for each in (one, other))
            return Difference(sample, path, "keys", *keys)
        parts = ((f"{path}[{key!r}]", one[key], other[key]) for key in one)
        return _first_of(parts, sample, ulps)
    if _is_list(one) and _is_list(other):
        if len(one) != len(other):
            return Difference(sample, path, "length", str(len(one)), str(len(other)))
        both = enumerate(zip(one, other, strict=True))
        parts = ((f"{path}[{place}]", ours, theirs) for place, (ours, theirs) in both)
        return _first_of(parts, sample, ulps)
    ours, theirs = _array(one), _array(other)
    if ours is not None and theirs is not None:
        types = _dtype(one, ours), _dtype(other, theirs)
        return _compared_arrays(ours, theirs, types, sample, path, ulps=ulps)
    if ours is not None or theirs is not None or type(one) is not type(other):
        return Difference(sample, path, "kinds", _kind(one), _kind(other))
    if one == other:
        return None
    return Difference(sample, path, "values", repr(one)[:_SHOWN], repr(other)[:_SHOWN])


def _first_of(parts: Iterable[tuple[str, Any, Any]], sample: int, ulps: int) -> Difference | None:
    found = (_compared(ours, theirs, sample, path, ulps) for path, ours, theirs in parts)
    return next((difference for difference in found if difference is not None), None)


def _compared_arrays(
    one: Array, other: Array, types: tuple[str, str], sample: int, path: str, *, ulps: int
) -> Difference | None:
    if one.shape != other.shape:
        ours, theirs = (f"{each.shape}" for each in (one, other))
        return Difference(sample, path, "shape", ours, theirs, _shape_hint(one, other))
    if types[0] != types[1]:
        pairs = zip((one, other), types, strict=True)
        ours, theirs = (f"{dtype}, {_range(each)}" for each, dtype in pairs)
        return Difference(sample, path, "dtype", ours, theirs, _value_hint(one, other))
    equal = one == other
    if one.dtype.kind in "fc":
        equal |= np.isnan(one) & np.isnan(other)
    if one.dtype.kind == "f" and ulps:
        equal |= _ulps(one, other) <= ulps
    if equal.all():
        return None
    at = np.unravel_index(int((~equal).argmax()), equal.shape)
    place = f"{path}[{', '.join(map(str, at))}]" if at else path
    ours, theirs = (f"{each[at]!s}, {_range(each)}" for each in (one, other))
    return Difference(sample, place, "values", ours, theirs, _apart(one, other, ~equal))


def _apart(one: Array, other: Array, differs: npt.NDArray[np.bool_]) -> str:
    """Return how many numbers differ, by how much, and what may have caused it."""
    if one.dtype.kind not in "fiub":
        return f"{int(differs.sum())} of {differs.size} values differ"
    gap = np.abs(one.astype(np.float64) - other.astype(np.float64))[differs]
    says = f"{int(differs.sum())} of {differs.size} values differ"
    if np.isfinite(gap).any():
        says += f", by up to {gap[np.isfinite(gap)].max():.3g}"
    if one.dtype.kind == "f":
        largest = int(_ulps(one, other)[differs].max())
        says += f" ({largest:,} units in the last place)" if largest < 10_000 else ""
    hint = _value_hint(one, other)
    return f"{says}; {hint}" if hint else says


def _value_hint(one: Array, other: Array) -> str:
    """Return what turns the first array into the second, if that is simple."""
    if one.dtype.kind not in "fiub" or other.dtype.kind not in "fiub" or one.size < _FEWEST:
        return ""
    x, y = one.astype(np.float64).ravel(), other.astype(np.float64).ravel()
    if not (np.isfinite(x).all() and np.isfinite(y).all()) or np.ptp(x) == 0:
        return ""
    for axis, size in enumerate(one.shape):
        if 1 < size <= 4 and np.array_equal(np.flip(one, axis), other):
            return f"axis {axis} is in reverse order, as RGB and BGR are"
    slope, shift = np.polyfit(x, y, 1)
    scale = max(np.abs(y).max(), 1e-30)
    if np.abs(slope * x + shift - y).max() > _CLOSE * scale:
        return ""
    if abs(shift) <= _CLOSE * scale:
        return "" if abs(slope - 1) < _CLOSE else f"the second is {slope:.4g} times the first"
    return f"the second is {slope:.4g} times the first {'+' if shift > 0 else '-'} {abs(shift):.4g}"


def _shape_hint(one: Array, other: Array) -> str:
    if sorted(one.shape) == sorted(other.shape):
        return "the axes are in another order, as channels first and channels last are"
    if one.size == other.size:
        return "the same number of values in another arrangement"
    return ""


def _ulps(one: Array, other: Array) -> npt.NDArray[np.float64]:
    """Return the distance of floating-point numbers in units in the last place."""
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(one), np.abs(other))
        unit = np.spacing(size).astype(np.float64)
        gap = np.abs(one.astype(np.float64) - other.astype(np.float64)) / unit
    found: npt.NDArray[np.float64] = np.where(np.isfinite(gap), gap, np.inf)
    return np.minimum(found, 1e18)


def _range(array: Array) -> str:
    if array.dtype.kind not in "fiub" or not array.size:
        return f"{array.size} values"
    kept = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    if not kept.size:
        return "no finite values"
    lost = f", {array.size - kept.size} not finite" if kept.size < array.size else ""
    return f"range {kept.min():.4g} to {kept.max():.4g}{lost}"


def _array(value: Any) -> Array | None:
    """Return tensors, arrays, images and numbers as an array, else None."""
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        found: Array = (value.float() if value.dtype is torch.bfloat16 else value).numpy()
        return found
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    if isinstance(value, bool | int | float):
        return np.asarray(value)
    if hasattr(value, "__array_interface__"):  # images
        return np.asarray(value)
    return None


def _dtype(value: Any, array: Array) -> str:
    """Return the type of the numbers: NumPy has no bfloat16."""
    return str(value.dtype if isinstance(value, Tensor) else array.dtype).removeprefix("torch.")


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _kind(value: Any) -> str:
    return f"{type(value).__name__}: {str(value)[:_SHOWN]}"
