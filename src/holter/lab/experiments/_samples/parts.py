"""Samples taken apart: inputs and targets, their digests, and the little that is kept of them."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from holter.lab.experiments._samples.pieces import Pieces, pieces_of
from holter.lab.setup import Roles

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

TARGET_NAMES = frozenset(
    (
        *("y", "ys", "yb", "y_batch", "batch_y", "label", "labels", "target", "targets", "tgt"),
        *("class", "classes", "answer", "answers"),
    )
)
_PROBED = 64  # elements of an input that are kept to count its different values
_CHANNELS = (2, 3, 4)
_LENGTH = 512  # of a sequence that is kept whole
_BUCKETS = 61  # of tokens
_COLUMNS = 512  # of a row that is kept whole
_FIELDS = 128  # numbers of a sample that are compared one by one
_LONG = 48  # characters of a sample on the screen


@dataclass(frozen=True, slots=True)
class DatasetSample:
    """What is kept of a sample: where it is, digests of its parts, and a few numbers."""

    index: int
    inputs: bytes | None  # None where they hold something that cannot be compared
    targets: bytes | None
    label: float | None  # the target, if it is a single number
    is_class: bool  # a whole number
    extremes: tuple[int, int] | None  # lowest and highest class of the target, whatever its shape
    row: Floats | None  # the input, if it is a row of a table
    fields: Floats | None  # all inputs as one row, categories too
    pieces: Pieces | None  # of what may be a window
    probe: Floats | None
    bag: Floats | None  # how often tokens occur, in so many classes of them
    sequence: tuple[Array, Array] | None  # tokens, and a label for each
    channels: Floats | None  # the mean of each, if it is an image that has several
    dimensions: int
    nonfinite: tuple[int, int]  # elements of inputs and of targets
    moments: tuple[int, float, float, float]  # count, sum, sum of squares, largest
    keys: Mapping[str, float | str]  # single values beside the inputs, by name
    kinds: str  # the types of what the inputs are made of
    shown: tuple[str, str] = ("", "")  # inputs and targets, for people


def sample_of(
    value: Any,
    index: int,
    *,
    ignored: int | None = None,
    show: bool = False,
    roles: Roles | None = None,
) -> DatasetSample:
    """What is to be kept of a sample; `ignored` is a class that stands for none."""
    held = _by_roles(value, roles) or parts(value)
    inputs, targets = ([_arrayed(each) for each in part] for part in held)
    largest = largest_array(inputs)
    target = array(targets[0]) if len(targets) == 1 else None
    label = float(target.reshape(-1)[0]) if target is not None and target.size == 1 else None
    return DatasetSample(
        index,
        digest(inputs),
        digest(targets),
        label,
        label is not None and np.isfinite(label) and label == round(label),
        _extremes(target, ignored),
        _row(inputs),
        _fields(inputs),
        pieces_of(largest),
        _probe(largest),
        _bag(largest),
        _sequence(largest, target),
        _channels(largest),
        0 if largest is None else largest.ndim,
        (_nonfinite(inputs), _nonfinite(targets)),
        _moments(largest),
        _keys(value, "" if roles is None else roles.target),
        ", ".join(dict.fromkeys(type(leaf).__name__ for leaf in inputs)),
        (_shown(inputs), _shown(targets)) if show else ("", ""),
    )


def parts(value: Any) -> tuple[list[Any], list[Any]]:
    """The leaves of a sample that are inputs, and those that are targets.

    Of a tuple the last is the target, of a dictionary what is named like one.
    """
    if isinstance(value, Mapping):
        inputs: list[Any] = []
        targets: list[Any] = []
        for name, each in value.items():
            if str(name).lower() in TARGET_NAMES:
                targets += leaves(each)
            elif _is_pair(each):
                more = parts(each)
                inputs += more[0]
                targets += more[1]
            else:
                inputs += leaves(each)
        return inputs, targets
    if isinstance(value, tuple | list) and len(value) == 1:
        return parts(value[0])
    if isinstance(value, tuple | list) and not (isinstance(value, list) and _is_numbers(value)):
        return [leaf for each in value[:-1] for leaf in leaves(each)], leaves(value[-1])
    return leaves(value), []


def _by_roles(value: Any, roles: Roles | None) -> tuple[list[Any], list[Any]] | None:
    """Inputs and targets as the training uses them; None where a sample is not made that way."""
    if roles is None:
        return None
    held = dict(paths(value))
    if roles.target not in held or any(path not in held for path in roles.inputs):
        return None
    given = roles.inputs or tuple(path for path in held if path != roles.target)
    return [held[path] for path in given], [held[roles.target]]


def paths(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a sample, each with the path it has in a batch of such samples."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from paths(each, f"{path}[{name!r}]")
    elif isinstance(value, tuple | list) and not _is_numbers(value):
        for place, each in enumerate(value):
            yield from paths(each, f"{path}[{place}]")
    else:
        yield path, np.asarray(value) if isinstance(value, tuple | list) else value


def leaves(value: Any) -> list[Any]:
    """What is in a structure, in order; a list of numbers is one."""
    if isinstance(value, Mapping):
        return [leaf for each in value.values() for leaf in leaves(each)]
    if isinstance(value, tuple | list):
        if _is_numbers(value):
            return [np.asarray(value)]
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


def array(leaf: Any) -> Array | None:
    """A leaf as an array of numbers, if it is one: a tensor, an array, an image, a number."""
    if isinstance(leaf, Tensor):
        if leaf.layout is not torch.strided or leaf.is_quantized or leaf.is_nested:
            return None
        held = leaf.detach().cpu()
        # numpy knows neither bfloat16 nor the floats of 8 bits.
        return (
            held.float() if held.is_floating_point() and held.element_size() < 4 else held
        ).numpy()
    if isinstance(leaf, np.ndarray | Number) or type(leaf).__module__.startswith("PIL."):
        made = np.asarray(leaf)
        return made if made.dtype.kind in "biufc" else None
    return None


def digest(held: list[Any]) -> bytes | None:
    """A number for the contents of some leaves; None where one of them cannot be read."""
    if all(each is None for each in held):
        return None
    hashed = hashlib.blake2b(digest_size=16)
    for leaf in held:
        made = array(leaf)
        if made is not None:
            hashed.update(f"{made.dtype.str}{made.shape}".encode())
            hashed.update(made.tobytes())
        elif isinstance(leaf, str | bytes | None):
            hashed.update(repr(leaf).encode())
        else:
            return None
    return hashed.digest()


def largest_array(held: list[Any]) -> Array | None:
    """Of several leaves the array with most elements."""
    arrays = [each for each in map(array, held) if each is not None and each.size]
    return max(arrays, key=lambda each: each.size, default=None)


def _keys(value: Any, target: str) -> dict[str, float | str]:
    """Return the single numbers and texts of a sample that are not its target."""
    if isinstance(value, Mapping):
        found: dict[str, float | str] = {}
        for name, each in value.items():
            is_target = str(name).lower() in TARGET_NAMES or target.endswith(f"[{name!r}]")
            if not is_target and (key := _key(each)) is not None:
                found[str(name)] = key
        return found
    if not isinstance(value, tuple | list) or _is_numbers(value):
        return {}
    if len(value) == 1 or isinstance(value[0], Mapping):
        return _keys(value[0], target)
    parts = value[0] if isinstance(value[0], tuple | list) else value[:-1]
    known = {
        f"part {place}": _key(each)
        for place, each in enumerate(parts)
        if parts is value[0] or target != f"[{place}]"
    }
    return {name: key for name, key in known.items() if key is not None}


def _key(leaf: Any) -> float | str | None:
    if isinstance(leaf, str):
        return leaf
    made = array(leaf)
    if made is None or made.size != 1 or made.dtype.kind not in "iuf":
        return None
    return float(made.reshape(-1)[0])


def _arrayed(leaf: Any) -> Any:
    made = array(leaf)
    return leaf if made is None else made


def _is_numbers(value: Any) -> bool:
    return len(value) > 0 and all(isinstance(each, Number) for each in value)


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) > 1 and not _is_numbers(value)


def _extremes(target: Array | None, ignored: int | None) -> tuple[int, int] | None:
    if target is None or target.dtype.kind not in "iu":
        return None
    kept = target if ignored is None else target[target != ignored]
    return (int(kept.min()), int(kept.max())) if kept.size else None


def _row(inputs: list[Any]) -> Floats | None:
    """Return the input, or beside categories the only one of several floating-point numbers."""
    made = [array(each) for each in inputs]
    if any(each is None or each.ndim > 1 for each in made):
        return None
    floats = [each for each in made if each is not None and each.dtype.kind == "f"]
    rows = [each for each in floats if each.ndim == 1 and (len(each) > 1 or len(made) == 1)]
    if len(rows) != 1 or len(floats) != 1 or len(rows[0]) > _COLUMNS:
        return None
    return rows[0].astype(np.float64)


def _fields(inputs: list[Any]) -> Floats | None:
    """Return all numbers of a sample in one row, where none of its parts has several axes."""
    made = [array(each) for each in inputs]
    held = [each.reshape(-1) for each in made if each is not None and each.ndim <= 1]
    if not held or len(held) < len(made) or sum(map(len, held)) > _FIELDS:
        return None
    if any(each.dtype.kind == "c" for each in held):
        return None
    return np.concatenate([each.astype(np.float64) for each in held])


def _probe(made: Array | None) -> Floats | None:
    if made is None or not (made.dtype.kind == "f" or (made.dtype == np.uint8 and made.ndim > 1)):
        return None
    flat = made.reshape(-1)
    # The middle of each stretch: the first ones of an image are its border.
    places = ((np.arange(_PROBED) + 0.5) * flat.size / _PROBED).astype(int)
    kept: Floats = flat[np.unique(places)].astype(np.float64)
    return kept


def _bag(made: Array | None) -> Floats | None:
    """Count tokens by their remainder, so that sequences of any length can be compared."""
    if made is None or made.ndim != 1 or made.size < 2 or made.dtype.kind not in "iu":
        return None
    return np.bincount(made.astype(np.int64) % _BUCKETS, minlength=_BUCKETS).astype(np.float64)


def _sequence(made: Array | None, target: Array | None) -> tuple[Array, Array] | None:
    if made is None or target is None or made.ndim != 1 or made.shape != target.shape:
        return None
    if (
        made.dtype.kind not in "iu"
        or target.dtype.kind not in "iu"
        or not 3 <= made.size <= _LENGTH
    ):
        return None
    return made.astype(np.int64), target.astype(np.int64)


def _channels(made: Array | None) -> Floats | None:
    """Return the mean of each channel of an image, which may come first or last."""
    if made is None or made.ndim != 3 or made.dtype.kind not in "fu":
        return None
    axis = next((axis for axis in (0, 2) if made.shape[axis] in _CHANNELS), None)
    if axis is None:
        return None
    means: Floats = made.astype(np.float64).mean(axis=tuple({0, 1, 2} - {axis}))
    return means


def _nonfinite(held: list[Any]) -> int:
    arrays = [each for each in map(array, held) if each is not None and each.dtype.kind in "fc"]
    return sum(int(each.size - np.isfinite(each).sum()) for each in arrays)


def _moments(made: Array | None) -> tuple[int, float, float, float]:
    if made is None or made.dtype.kind == "c":
        return 0, 0.0, 0.0, 0.0
    values = made.astype(np.float64).reshape(-1)
    values = values[np.isfinite(values)]
    if not values.size:
        return 0, 0.0, 0.0, 0.0
    return values.size, values.sum(), float(values @ values), np.abs(values).max()


def _shown(held: list[Any]) -> str:
    return "; ".join(_shown_leaf(each) for each in held[:3]) + ("; ..." if held[3:] else "")


def _shown_leaf(leaf: Any) -> str:
    made = array(leaf)
    if made is None:
        text = repr(leaf) if isinstance(leaf, str | bytes | None) else type(leaf).__name__
        return text if len(text) <= _LONG else text[: _LONG - 3] + "..."
    if made.size == 1:
        return f"{made.reshape(-1)[0].item():.4g}" if made.dtype.kind == "f" else f"{made.item()}"
    if made.ndim == 1:
        some = " ".join(f"{each:.3g}" for each in made[:6].tolist() if made.dtype.kind != "c")
        return f"[{some}{' ...' if len(made) > 6 else ''}] ({len(made)})"
    shape = "x".join(map(str, made.shape))
    if not made.size or made.dtype.kind == "c":
        return f"{made.dtype} {shape}"
    return f"{made.dtype} {shape}, {made.min():.3g} to {made.max():.3g}, mean {made.mean():.3g}"
