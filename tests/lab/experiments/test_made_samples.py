"""How samples reach a batch, how they were scaled, and whether targets depend on inputs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, TensorDataset

from holter.lab.experiments._samples.alignment import OFFSETS, alignment
from holter.lab.experiments._samples.collating import mispaired
from holter.lab.experiments._samples.datasets import Split, read
from holter.lab.experiments._samples.dependence import dependence
from holter.lab.experiments._samples.parts import sample_of
from holter.lab.experiments._samples.skew import skew
from holter.lab.experiments._samples.standardised import is_own
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Roles, Setup

Sample = tuple[Tensor, Tensor]
GENERATOR = np.random.default_rng(0)


def together(samples: list[Sample]) -> Sample:
    samples = sorted(samples, key=lambda sample: -len(sample[0]))
    tokens = pad_sequence([tokens for tokens, _ in samples], batch_first=True)
    return tokens, torch.stack([label for _, label in samples])


def apart(samples: list[Sample]) -> Sample:
    tokens = sorted((tokens for tokens, _ in samples), key=len)
    return pad_sequence(tokens, batch_first=True), torch.stack([label for _, label in samples])


def recoded(samples: list[Sample]) -> Sample:
    tokens, labels = together(samples)
    return tokens, nn.functional.one_hot(labels, 4)


def setup_of(collate: Callable[..., Any]) -> Setup:
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(3, 12, (40,), generator=generator).tolist()
    samples = [
        (torch.randint(1, 50, (length,), generator=generator), torch.tensor(n % 4))
        for n, length in enumerate(lengths)
    ]
    model = nn.EmbeddingBag(50, 4)
    loader: Any = DataLoader(samples, 8, collate_fn=collate)  # type: ignore[arg-type]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return Setup.of(model, optimizer, nn.CrossEntropyLoss(), loader)


@pytest.mark.parametrize(
    ("collate", "share"),
    [(together, 0.0), (apart, 0.3), (recoded, None)],
    ids=["together", "apart", "recoded"],
)
def test_rows_of_a_batch_are_found_among_its_samples(
    collate: Callable[..., Any], share: float | None
) -> None:
    setup = setup_of(collate)
    found = mispaired(setup, setup.loaders["train"], read(setup, "train", samples=40, seconds=9))
    assert found is share or found == share or (share and found and found >= share)


def points(scale: float, shift: float) -> Any:
    return GENERATOR.normal(shift, scale, (200, 3)).astype(np.float32)


def scaled(x: Any) -> Any:
    return (x - x.mean(0)) / x.std(0)


class Held:
    def __init__(self, x: Any) -> None:
        self.x = x


@pytest.mark.parametrize(
    ("dataset", "own"),
    [
        (Held(scaled(points(3, 5))), True),
        (TensorDataset(torch.from_numpy(scaled(points(2, 1)))), True),
        (Held(scaled(points(3, 5)[:, 0])), True),  # a series
        (Held(points(1, 0)), False),  # by the statistics of others
        (Held(scaled(points(1, 0).T.repeat(20, 0)).T), False),  # each row by itself
        (Held(points(1, 0)[:20]), None),  # too few
        (Held("no numbers"), None),
    ],
)
def test_own_mean_and_deviation(dataset: Any, own: bool | None) -> None:
    assert is_own(dataset) is own


@pytest.mark.parametrize("kind", ["classes", "numbers", "tokens"])
@pytest.mark.parametrize("is_paired", [True, False])
def test_targets_depend_on_inputs_unless_they_are_shuffled(kind: str, is_paired: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(4, (400,), generator=generator)
    x = 2 * torch.randn(4, 6, generator=generator)[labels] + torch.randn(
        400, 6, generator=generator
    )
    if kind == "tokens":
        x = 10 * labels[:, None] + torch.randint(12, (400, 7), generator=generator)
    y = x[:, 0] * 2 + 0.1 if kind == "numbers" else labels
    y = y if is_paired else y[torch.randperm(400, generator=generator)]
    loader: Any = DataLoader(TensorDataset(x, y), 32)
    model = nn.Linear(6, 4)
    setup = Setup.of(model, torch.optim.SGD(model.parameters(), 0.1), nn.MSELoss(), loader)
    found = dependence(read(setup, "train", samples=400, seconds=9))
    assert found is not None
    better = (found.neighbours > found.neighbours_permuted, found.column > found.column_permuted)
    assert any(better) is is_paired


@pytest.mark.parametrize(
    ("value", "roles", "label", "row"),
    [
        ((np.ones(4), 3.0, 7.0), Roles("[1]", ("[0]",)), 3.0, 4),
        ({"x": np.ones(5), "rating": 2.5, "id": 4}, Roles("['rating']", ("['x']",)), 2.5, 5),
        ((np.ones(4), 3.0), None, 3.0, 4),
        ((np.ones(4), 3.0), Roles("['y']"), 3.0, 4),  # a batch that is made otherwise
    ],
)
def test_samples_are_taken_apart_as_the_training_does(
    value: Any, roles: Roles | None, label: float, row: int
) -> None:
    sample = sample_of(value, 0, roles=roles)
    assert sample.label == label
    assert label not in sample.keys.values()  # a target is no group
    assert sample.row is not None
    assert len(sample.row) == row


def split_of(x: Tensor, name: str) -> Split:
    samples = tuple(sample_of((row, torch.tensor(0)), n) for n, row in enumerate(x))
    return Split(name, len(x), samples, None)


@pytest.mark.parametrize("kind", ["table", "images"])
@pytest.mark.parametrize(
    ("order", "factor"),
    [([0, 1, 2], 1.0), ([2, 1, 0], 1.0), ([0, 1, 2], 9.0)],
    ids=["alike", "reversed", "scaled"],
)
def test_columns_of_both_splits(kind: str, order: list[int], factor: float) -> None:
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(300, 3, generator=generator) + torch.tensor([0.0, 2.0, 5.0])
    if kind == "images":
        x = x[:, :, None, None].expand(300, 3, 5, 4).contiguous()
    found = skew(split_of(x[:200], "train"), split_of(factor * x[200:][:, order], "valid"))
    assert found is not None
    assert found.origin.tolist() == order
    is_alike = order == [0, 1, 2] and factor == 1.0
    assert bool(np.abs(found.shift).max() > 1.5) is not is_alike
    assert bool(found.ratio.max() > 3) is (factor != 1.0)


@pytest.mark.parametrize("offset", [0, 1])
def test_labels_belong_to_a_token(offset: int) -> None:
    generator = torch.Generator().manual_seed(3)
    tokens = torch.randint(30, (100, 20), generator=generator)
    labels = (tokens % 4).roll(-offset, 1)
    samples = tuple(sample_of(pair, n) for n, pair in enumerate(zip(tokens, labels, strict=True)))
    found = alignment(Split("train", 100, samples, None), None)
    assert found is not None
    assert OFFSETS[int(found.argmax())] == offset
    assert np.delete(found, found.argmax()).max() < 0.2


def test_tokens_that_are_their_own_labels_have_no_alignment() -> None:
    tokens = torch.randint(30, (100, 21), generator=torch.Generator().manual_seed(4))
    samples = tuple(sample_of((row[:-1], row[1:]), n) for n, row in enumerate(tokens))
    assert alignment(Split("train", 100, samples, None), None) is None


class WithoutLength(TensorDataset):
    is_made = False  # a loader asks for the length when it is made

    def __len__(self) -> int:
        if self.is_made:
            raise TypeError("object of type 'Slices' has no len()")
        return super().__len__()


def test_a_data_set_that_does_not_tell_its_length_is_a_reason_not_an_error() -> None:
    samples = WithoutLength(torch.ones(16, 3), torch.ones(16, 1))
    model, loader = nn.Linear(3, 1), DataLoader(samples, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    setup = Setup.of(model, optimizer, nn.MSELoss(), loader)
    samples.is_made = True
    with pytest.raises(InapplicableError, match="WithoutLength has no length"):
        read(setup, "train", samples=8, seconds=1.0)
