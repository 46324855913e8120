"""Augmentation: the random transforms of training data sets left out."""

import copy
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from holter.lab.changes import Altered, TappedChange
from holter.lab.changes._hooks import is_training
from holter.lab.randomness import RandomState
from holter.record.trials import TrialKind, TrialName
from holter.watching.taps import Tap

# Attributes of a data set that hold a transform of its inputs, or say whether there is one.
_NAMES = ("transform", "transforms", "augment", "augmentation", "augmentations", "aug")
_INNER = ("dataset", "datasets")  # of a subset, of a concatenation
_PARTS = "transforms"  # of a composition
_DEEPEST = 4  # data sets inside one another
_TRIES = 6  # a part that is applied to half of all samples shows itself in these


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.shape == other.shape and bool(torch.equal(one, other))
    return bool(np.array_equal(np.asarray(one), np.asarray(other)))


def _alike(one: Any, other: Any) -> bool:
    """Whether a transform returns what it is given, so that it can be left out."""
    return type(one) is type(other) and _extent(one) == _extent(other)


def _extent(value: Any) -> Any:
    """Return the shape of an array or a tensor, or the size of an image."""
    return getattr(value, "shape", None) or getattr(value, "size", None)


class WithoutRandomParts:
    """A transform that leaves out the parts of another one that are random.

    A part is random if it makes something else of the same input a second time. What also changes
    the type or the shape is needed and stays.
    """

    def __init__(self, transform: Callable[..., Any], altered: Altered) -> None:
        parts = getattr(transform, _PARTS, None)
        self._parts: list[Callable[..., Any]] = [transform]
        if isinstance(parts, list | tuple) and all(map(callable, parts)):
            self._parts = list(parts)
        self._own, self._altered = transform, altered
        self._random: dict[int, bool] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._own, name)

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Apply the parts that are not random; all if more than a sample is given."""
        if len(given) != 1 or named:
            return self._own(*given, **named)
        sample = given[0]
        for place, part in enumerate(self._parts):
            if place not in self._random:
                self._random[place] = _is_random(part, sample)
            if self._random[place]:
                self._altered()
            else:
                sample = part(sample)
        return sample


def _is_random(part: Callable[..., Any], given: Any) -> bool:
    """Whether a part makes something else of the same input; random numbers are put back."""
    kept = RandomState.now()
    try:
        part = copy.deepcopy(part)  # which may hold a generator of its own
        made = [part(copy.deepcopy(given)) for _ in range(_TRIES)]
        return all(_alike(given, other) for other in made) and not all(
            _same(made[0], other) for other in made[1:]
        )
    except Exception:
        return False
    finally:
        kept.restore()


def _transformed(dataset: Any, depth: int = 0) -> Iterator[tuple[Any, str]]:
    """Yield the data sets inside one that have a transform, and its name."""
    held = getattr(dataset, "__dict__", {})
    for name in _NAMES:
        value = held.get(name)
        if value is True or (callable(value) and not inspect.isclass(value)):
            yield dataset, name
    for name in _INNER if depth < _DEEPEST else ():
        inner = held.get(name)
        for each in inner if isinstance(inner, list | tuple) else [inner]:
            if each is not None:
                yield from _transformed(each, depth + 1)


@contextmanager
def _off(altered: Altered) -> Iterator[None]:
    replaced: list[tuple[Any, str, Any]] = []

    def leave_out(dataset: Any) -> None:
        for holder, name in list(_transformed(dataset)):
            own = vars(holder)[name]
            if isinstance(own, WithoutRandomParts):
                continue
            replaced.append((holder, name, own))
            if own is True:
                altered()
                vars(holder)[name] = False
            else:
                vars(holder)[name] = WithoutRandomParts(own, altered)

    def iterate(original: Callable[..., Any]) -> Callable[..., Any]:
        def begun(self: DataLoader[Any]) -> Any:
            known = len(replaced)
            if is_training():
                leave_out(self.dataset)
            if len(replaced) > known and self.num_workers:
                _meet(self.dataset)  # workers do not tell what they alter
            return original(self)

        return begun

    tap = Tap(DataLoader, "__iter__", iterate)
    try:
        yield
    finally:
        tap.remove()
        for holder, name, own in reversed(replaced):
            vars(holder)[name] = own


def _meet(dataset: Dataset[Any]) -> None:
    """Fetch a sample in this process, and put back the random numbers."""
    kept = RandomState.now()
    with suppress(Exception):
        dataset[0]
    kept.restore()


AUGMENTATION_OFF = TappedChange(
    TrialName(TrialKind.AUGMENTATION_OFF),
    "Leave out the random transforms of training data sets.",
    _off,
)
