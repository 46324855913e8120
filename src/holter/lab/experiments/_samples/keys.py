"""Keys: what is known of each sample besides its contents, such as a person, a scene or a time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor
from torch.utils.data import Subset

from holter.lab.experiments._samples import columns
from holter.lab.experiments._samples.datasets import Split, origin
from holter.lab.experiments._samples.parts import Floats

_MOST = 64  # keys that are looked at
_SAME_ORDER = 0.9  # rank correlation with a target that is a number
_LABELS = ("label", "target", "class", "categor", "answer")  # in the name of a finer or coarser one

_SINGLE = (int, float, str, np.number)

Values = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Key:
    """A value for each examined sample of both splits; numbers, or texts."""

    name: str
    train: Values
    valid: Values
    column: int | None = None  # of the inputs, if it is one

    @property
    def is_number(self) -> bool:
        """Whether its values have an order."""
        return self.train.dtype.kind in "iuf"


def keys(train: Split, valid: Split) -> list[Key]:
    """Return the columns of a table, single values in samples and lists beside them, by name."""
    found: dict[str, Key] = {}
    for key in (*_of_columns(train, valid), *_of_samples(train, valid), *_of_holders(train, valid)):
        if not _is_target(key, train):
            found.setdefault(key.name, key)
    return list(found.values())[:_MOST]


def positions(train: Split, valid: Split) -> Key | None:
    """Return the place of each sample in the one data set that both splits are parts of."""
    if train.served is None or valid.served is None:
        return None
    one, places, surely = origin(train.served.dataset, [each.index for each in train.samples])
    other, others, also = origin(valid.served.dataset, [each.index for each in valid.samples])
    if one is not other or not (surely and also):
        return None
    return Key("position", np.asarray(places), np.asarray(others))


def _of_columns(train: Split, valid: Split) -> Iterator[Key]:
    rows, others = columns.table(train), columns.table(valid)
    if rows is None or others is None or rows.rows.shape[1] != others.rows.shape[1]:
        return
    for place in range(rows.rows.shape[1]):
        own, theirs = rows.rows[:, place], others.rows[:, place]
        if np.isfinite(own).all() and np.isfinite(theirs).all():
            yield Key(f"column {place}", own, theirs, place)


def _of_samples(train: Split, valid: Split) -> Iterator[Key]:
    for name in train.samples[0].keys:
        own = [sample.keys.get(name) for sample in train.samples]
        theirs = [sample.keys.get(name) for sample in valid.samples]
        made = _pair(own, theirs)
        if made is not None:
            yield Key(name, *made)


def _of_holders(train: Split, valid: Split) -> Iterator[Key]:
    """Return lists and columns that the data sets of both splits hold for each sample."""
    own, theirs = (_held(split) for split in (train, valid))
    for name in own.keys() & theirs.keys():
        made = _pair(own[name], theirs[name])
        if made is not None:
            yield Key(name, *made)


def _held(split: Split) -> dict[str, list[Any]]:
    if split.served is None:
        return {}
    dataset, places = split.served.dataset, [sample.index for sample in split.samples]
    while isinstance(dataset, Subset):
        inner = dataset.indices
        places = [int(inner[place]) for place in places]
        dataset = dataset.dataset
    if not hasattr(dataset, "__dict__") or not hasattr(dataset, "__len__"):
        return {}
    count, found = len(dataset), {}
    for name, held in vars(dataset).items():
        for inner_name, values in _sequences(name, held):
            if len(values) == count:
                found[inner_name] = [values[place] for place in places]
    return found


def _sequences(name: str, held: Any) -> Iterator[tuple[str, Sequence[Any] | Values]]:
    """Yield lists of single values, and those inside a table such as a data frame."""
    if isinstance(held, Tensor):
        held = held.detach().cpu().numpy()
    is_list = isinstance(held, list) and bool(held) and isinstance(held[0], _SINGLE)
    if is_list or (isinstance(held, np.ndarray) and held.ndim == 1):
        yield name, held
    elif isinstance(held, Mapping):
        for key, values in held.items():
            if isinstance(values, list | np.ndarray | Tensor):
                yield from _sequences(str(key), values)
    elif type(held).__name__ == "DataFrame" and hasattr(held, "columns"):
        for key in held.columns:
            yield str(key), np.asarray(held[key])


def _pair(own: Sequence[Any], theirs: Sequence[Any]) -> tuple[Values, Values] | None:
    """Return the values of both splits as arrays of one kind; None where they are no values."""
    if any(each is None for each in (*own, *theirs)):
        return None
    try:
        made, others = np.asarray(own), np.asarray(theirs)
    except ValueError:  # of different shapes
        return None
    if made.ndim != 1 or others.ndim != 1:
        return None
    if made.dtype.kind == others.dtype.kind == "M":
        made, others = made.astype(np.int64), others.astype(np.int64)
    elif made.dtype.kind == others.dtype.kind == "O":
        if not all(isinstance(each, str) for each in (*own, *theirs)):
            return None
        made, others = made.astype(np.str_), others.astype(np.str_)
    numbers = made.dtype.kind in "iuf" and others.dtype.kind in "iuf"
    if numbers and not (np.isfinite(made).all() and np.isfinite(others).all()):
        return None
    return (made, others) if numbers or made.dtype.kind == others.dtype.kind == "U" else None


def _is_target(key: Key, train: Split) -> bool:
    """Whether a key is the target in other words: by its name, one value a class, its order."""
    if any(word in key.name.lower() for word in _LABELS):
        return True
    targets = targets_of(train)
    if targets is None:
        return True
    if not all(sample.is_class for sample in train.samples):
        ordered = key.train.astype(np.float64)[:, None] if key.is_number else None
        return ordered is not None and float(columns.order(ordered, targets)[0]) > _SAME_ORDER
    places = np.unique(key.train, return_inverse=True)[1]
    owners = np.unique(np.stack([targets, places]), axis=1)
    return len(owners.T) == len(np.unique(targets))


def targets_of(split: Split) -> Floats | None:
    """Return the target of each sample, if each is a single finite number."""
    labels = [sample.label for sample in split.samples]
    if any(label is None for label in labels):
        return None
    made = np.asarray(labels, np.float64)
    return made if np.isfinite(made).all() else None
