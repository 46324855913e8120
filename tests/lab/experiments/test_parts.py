from typing import Any

import numpy as np
import pytest
import torch

from holter.lab.experiments._samples.parts import digest, parts, sample_of

X, Y = torch.rand(3, 4), torch.tensor(2)


@pytest.mark.parametrize(
    ("sample", "inputs", "targets"),
    [
        ((X, Y), 1, 1),
        ([X, Y], 1, 1),
        ((X,), 1, 0),
        (X, 1, 0),
        ((X, X, Y), 2, 1),
        (([X, X], Y), 2, 1),
        (({"ids": X, "mask": X}, Y), 2, 1),
        ({"input_ids": [1, 2, 3], "labels": 1}, 1, 1),
        ({"image": X, "Label": Y}, 1, 1),
        ({"batch": (X, Y)}, 1, 1),
        ({"pixels": X}, 1, 0),
        ((0.5, 1), 1, 1),
        ([0.5, 1.5, 2.5], 1, 0),
        (("a text", 1), 1, 1),
    ],
)
def test_inputs_and_targets(sample: Any, inputs: int, targets: int) -> None:
    found = parts(sample)
    assert (len(found[0]), len(found[1])) == (inputs, targets)


@pytest.mark.parametrize(
    "leaf",
    [
        X,
        X.bfloat16(),
        X.half(),
        X.requires_grad_(),
        X.numpy(force=True),
        "text",
        b"bytes",
        3,
        2.5,
        np.float32(2.5),
    ],
)
def test_what_can_be_compared(leaf: Any) -> None:
    assert digest([leaf]) == digest([leaf])
    assert digest([leaf]) != digest([leaf, leaf])


@pytest.mark.parametrize(
    "held", [[], [None], [object()], [X, object()], [X.to_sparse()], [np.array([object()])]]
)
def test_what_cannot(held: list[Any]) -> None:
    assert digest(held) is None


def test_shape_and_kind_of_numbers_matter() -> None:
    zeros = torch.zeros(6)
    seen = {digest([each]) for each in (zeros, zeros.view(2, 3), zeros.int(), zeros.double())}
    assert len(seen) == 4


def test_what_is_kept_of_a_row() -> None:
    row = torch.tensor([1.0, float("nan"), 3.0])
    sample = sample_of((row, torch.tensor([7])), 5, show=True)
    assert sample.index == 5
    assert sample.row is not None
    assert (sample.label, sample.is_class, sample.extremes) == (7.0, True, (7, 7))
    assert sample.nonfinite == (1, 0)
    assert sample.moments == (2, 4.0, 10.0, 3.0)
    assert sample.shown == ("[1 nan 3] (3)", "7")


@pytest.mark.parametrize(
    ("inputs", "columns"),
    [
        ((torch.tensor([3, 1]), torch.rand(4)), 4),  # categories beside numbers
        ((torch.rand(3), torch.rand(4)), None),
        ((torch.tensor([3, 1]), torch.rand(4, 2)), None),
        ((torch.tensor(3), torch.rand(1)), None),
    ],
)
def test_the_numbers_beside_categories_are_the_row(
    inputs: tuple[torch.Tensor, ...], columns: int | None
) -> None:
    row = sample_of((*inputs, torch.tensor(1)), 0).row
    assert (None if row is None else len(row)) == columns


def test_what_is_kept_of_a_picture() -> None:
    image = np.arange(192, dtype=np.uint8).reshape(8, 8, 3)
    mask = torch.full((8, 8), 255)
    mask[0, :2] = torch.tensor([1, 4])
    sample = sample_of((image, mask), 0, ignored=255, show=True)
    assert sample.row is None
    assert (sample.label, sample.extremes) == (None, (1, 4))
    assert sample.dimensions == 3
    assert sample.probe is not None
    assert len(np.unique(sample.probe)) == 64
    assert sample.shown[0] == "uint8 8x8x3, 0 to 191, mean 95.5"


def test_tokens_have_no_values_to_count() -> None:
    assert sample_of((torch.arange(9), 1), 0).probe is None


def test_an_image_of_pillow_is_an_array() -> None:
    image = pytest.importorskip("PIL.Image").fromarray(np.zeros((4, 6, 3), np.uint8))
    assert digest([image]) == digest([np.zeros((4, 6, 3), np.uint8)])
