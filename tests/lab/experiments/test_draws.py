"""Versions of one sample: those that accumulate what was done to them, and independent ones."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch.utils.data import Dataset

from holter.lab.experiments._samples.draws import draw, wandering


class Kept(Dataset[Any]):
    """Images in a cache, which a transform may write to."""

    def __init__(self, change: Callable[[Any], Any]) -> None:
        self._images = np.random.default_rng(0).normal(size=(40, 3, 8, 8))
        self._change = change

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, index: int) -> Any:
        return self._change(self._images[index]).copy(), index % 4


_NUMBERS = np.random.default_rng(1)


def brighter(image: Any) -> Any:
    image += _NUMBERS.normal(scale=0.2)
    return image


def erased(image: Any) -> Any:
    row, column = _NUMBERS.integers(0, 5, 2)
    image[:, row : row + 3, column : column + 3] = 0
    return image


def rolled(image: Any) -> Any:
    return np.roll(image, _NUMBERS.integers(-1, 2), axis=2)


def measured(change: Callable[[Any], Any]) -> float | None:
    images = Kept(change)
    return wandering([[draw(images, at) for _ in range(6)] for at in range(16)])


@pytest.mark.parametrize(
    "change", [brighter, erased, lambda image: rolled(erased(brighter(image)))]
)
def test_changes_in_place_accumulate(change: Callable[[Any], Any]) -> None:
    ratio = measured(change)
    assert ratio is not None
    assert ratio > 1.5


@pytest.mark.parametrize(
    "change",
    [
        lambda image: brighter(image.copy()),
        lambda image: erased(image.copy()),
        lambda image: image[:, :, :: 1 if _NUMBERS.random() < 0.5 else -1],
        rolled,
    ],
    ids=["brighter", "erased", "flipped", "rolled"],
)
def test_independent_versions_do_not(change: Callable[[Any], Any]) -> None:
    ratio = measured(change)
    assert ratio is not None
    assert ratio < 1.3


def test_versions_that_are_the_same_tell_nothing() -> None:
    assert measured(lambda image: image) is None
