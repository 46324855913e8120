"""What is kept of a script tells how many samples a batch has."""

import numpy as np
import pytest
import torch

from holter.scripts.keepsake import Drawn, indexed_samples
from holter.watching.frames import Frames

SEQUENCES = ((torch.zeros(25, 20, 6),), {})


@pytest.mark.parametrize(
    "places",
    [torch.arange(25), np.arange(25), list(range(25)), torch.arange(25, dtype=torch.int32)],
)
def test_an_index_is_as_long_as_the_samples(places: object) -> None:
    def train(index: object) -> Drawn | None:
        return indexed_samples(SEQUENCES, Frames())

    assert train(places) == Drawn(25, shuffled=False)


@pytest.mark.parametrize(
    ("index", "shuffled"),
    [
        (torch.randperm(25), True),
        (torch.arange(24, -1, -1), True),
        (torch.arange(25) % 3, False),  # labels
        ([1, *"abcdefghijklmnopqrstuvwx"], False),
    ],
)
def test_an_index_out_of_order_is_shuffled(index: object, shuffled: bool) -> None:
    assert indexed_samples(SEQUENCES, Frames()) == Drawn(25, shuffled)


@pytest.mark.parametrize(
    ("index", "positions"),
    [
        (torch.arange(25), torch.arange(20)),  # positions are as long as the sequences
        (torch.rand(25), None),
        (torch.arange(7), None),
    ],
)
def test_nothing_is_guessed(index: torch.Tensor, positions: torch.Tensor | None) -> None:
    assert indexed_samples(SEQUENCES, Frames()) is None


def test_dimensions_of_one_length_are_not_told_apart() -> None:
    index = torch.arange(25)
    assert len(index) == 25
    assert indexed_samples(((torch.zeros(25, 25, 6),), {}), Frames()) is None
