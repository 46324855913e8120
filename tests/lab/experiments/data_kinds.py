"""Healthy data of many kinds, of which no check of data may find a fault."""

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)

from holter import check
from holter.diagnosis.engine import Checkup
from holter.lab.running import run
from holter.lab.setup import Setup
from holter.record.events import ExperimentFailed

RULES = {
    "data": (
        *("overlapping-splits", "duplicate-samples", "constant-features", "imbalanced-classes"),
        *("leaking-features", "nonfinite-samples", "out-of-range-labels", "related-splits"),
    ),
    "augmentation": ("augmented-validation", "identical-augmentation"),
}
HEALTHY: dict[str, Callable[[], Setup]] = {}


class Pictures(Dataset):
    """Inputs with targets, changed at random where wanted."""

    def __init__(
        self, x: Tensor, y: Tensor, change: Callable[[Tensor], Tensor] | None = None
    ) -> None:
        self.x, self.y, self.change = x, y, change

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        x = self.x[index]
        return (x if self.change is None else self.change(x)), self.y[index]


def flipped(x: Tensor) -> Tensor:
    return x.flip(-1) if torch.rand(()) < 0.5 else x + 0.05 * torch.randn_like(x)


def checked(experiment: str, setup: Setup, folder: Path, **options: Any) -> Checkup:
    """What the rules say of an experiment that does not fail."""
    made = run(experiment, setup, folder, **options)
    assert not made.events_of(ExperimentFailed)
    said = check(made, select=RULES[experiment])
    assert not said.failures
    return said


def training(
    train: Any,
    valid: Any = None,
    model: nn.Module | None = None,
    loss: Callable[..., Tensor] | None = None,
) -> Setup:
    """A training on data sets or loaders; as a classifier where nothing is said."""
    train, valid = (
        each if each is None or isinstance(each, DataLoader | list) else DataLoader(each, 32)
        for each in (train, valid)
    )
    model = model or nn.Sequential(nn.Flatten(), nn.LazyLinear(10))
    if isinstance(model[0] if isinstance(model, nn.Sequential) else model, nn.Flatten):
        model(next(iter(train))[0])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return Setup.of(model, optimizer, loss or nn.CrossEntropyLoss(), train, valid=valid)


def split(x: Tensor, y: Tensor, **how: Any) -> Setup:
    """A fifth of the data is for validation."""
    count = len(x) * 4 // 5
    return training(TensorDataset(x[:count], y[:count]), TensorDataset(x[count:], y[count:]), **how)


def healthy(function: Callable[[], Setup]) -> Callable[[], Setup]:
    def make() -> Setup:
        torch.manual_seed(0)
        return function()

    HEALTHY[function.__name__] = make
    return make


def pictures(count: int = 600) -> tuple[Tensor, Tensor]:
    return torch.rand(count, 1, 8, 8), torch.randint(10, (count,))


def table(count: int = 600) -> Tensor:
    return torch.randn(count, 6)


@healthy
def augmentation_in_training_only() -> Setup:
    x, y = pictures()
    return training(Pictures(x[:500], y[:500], flipped), Pictures(x[500:], y[500:]))


@healthy
def two_data_sets_split_by_the_same_indices() -> Setup:
    x, y = pictures()
    order = torch.randperm(600).tolist()
    train = Subset(Pictures(x, y, flipped), order[:500])
    return training(train, Subset(Pictures(x, y), order[500:]))


@healthy
def random_split_of_one() -> Setup:
    return training(*random_split(TensorDataset(*pictures()), [500, 100]))


@healthy
def samplers_of_disjoint_indices() -> Setup:
    data, order = TensorDataset(*pictures()), torch.randperm(600).tolist()
    loaders = (
        DataLoader(data, 32, sampler=SubsetRandomSampler(part))
        for part in (order[:500], order[500:])
    )
    return training(*loaders)


@healthy
def same_kind_and_length_sorted_by_class() -> Setup:
    y = torch.arange(300) // 30
    return training(
        Pictures(torch.rand(300, 1, 8, 8), y, flipped), Pictures(torch.rand(300, 1, 8, 8), y)
    )


@healthy
def random_numbers_of_torch_in_workers() -> Setup:
    x, y = pictures()
    train = DataLoader(Pictures(x[:500], y[:500], flipped), 32, num_workers=2)
    return training(train, Pictures(x[500:], y[500:]))


class Tokens(nn.Module):
    def __init__(self, classes: int, *, each: bool = False) -> None:
        super().__init__()
        self.embedding, self.head, self.each = nn.Embedding(50, 8), nn.Linear(8, classes), each

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.embedding(tokens)
        return self.head(hidden).transpose(1, 2) if self.each else self.head(hidden.mean(1))


@healthy
def tokens() -> Setup:
    x = torch.randint(50, (600, 12))
    return split(x, (x[:, 0] > 25).long(), model=Tokens(2))


@healthy
def short_sentences() -> Setup:
    x = torch.randint(4, (600, 4))
    return split(x, (x[:, 0] > 1).long(), model=Tokens(2))


@healthy
def windows_over_a_stream() -> Setup:
    stream = torch.randint(50, (2000,))
    windows = [(stream[i : i + 16], stream[i + 1 : i + 17]) for i in range(1800)]
    train, valid = DataLoader(windows[::2], 32), DataLoader(windows[1::2], 32)
    return training(train, valid, Tokens(50, each=True))


@healthy
def windows_over_a_pattern() -> Setup:
    stream = torch.arange(8).repeat(100)
    windows = [(stream[i : i + 8], stream[i + 1 : i + 9]) for i in range(700)]
    train, valid = DataLoader(windows[:600], 32), DataLoader(windows[600:], 32)
    return training(train, valid, Tokens(50, each=True))


@healthy
def regression() -> Setup:
    x = table()
    y = x @ torch.randn(6, 1) + 0.1 * torch.randn(600, 1)
    return split(x, y, model=nn.Linear(6, 1), loss=nn.MSELoss())


@healthy
def sine_of_one_number() -> Setup:
    x = torch.linspace(-3, 3, 600)[torch.randperm(600), None]
    return split(x, x.sin(), model=nn.Linear(1, 1), loss=nn.MSELoss())


@healthy
def windows_over_a_ramp() -> Setup:
    ramp = torch.arange(600) / 600
    x = torch.stack([ramp[i : i + 10] for i in range(580)])
    return split(x, ramp[10:590, None], model=nn.Linear(10, 1), loss=nn.MSELoss())


@healthy
def two_moons() -> Setup:
    angle, y = math.pi * torch.rand(600), torch.randint(2, (600,))
    x = torch.stack([angle.cos(), angle.sin()], 1) * (1 - 2 * y[:, None])
    return split(x + y[:, None] * torch.tensor([1.0, 0.5]) + 0.05 * torch.randn(600, 2), y)


@healthy
def six_bits() -> Setup:
    x = torch.randint(2, (600, 6)).float()
    return split(x, x.sum(1).long() % 2)


@healthy
def twelve_bits() -> Setup:
    x = torch.randint(2, (3000, 12)).float()
    return split(x, x.sum(1).long() % 2)


@healthy
def every_byte_once() -> Setup:
    x = torch.tensor([[(i >> bit) & 1 for bit in range(8)] for i in torch.randperm(256)]).float()
    return split(x, x.sum(1).long() % 2)


@healthy
def one_hot() -> Setup:
    y = torch.randint(6, (600,))
    return split(torch.eye(6)[y], y)


@healthy
def prototypes() -> Setup:
    y = torch.randint(4, (600,))
    return split(torch.randn(4, 8)[y], y)


@healthy
def segmentation() -> Setup:
    x = torch.rand(600, 1, 8, 8)
    return split(x, (x[:, 0] > 0.97).long(), model=nn.Conv2d(1, 2, 1))


@healthy
def several_labels() -> Setup:
    y = (torch.rand(600, 5) > 0.9).float()
    return split(table(), y, model=nn.Linear(6, 5), loss=nn.BCEWithLogitsLoss())


def _rebuilt(model: nn.Module, batch: list[Tensor]) -> Tensor:
    return (model(batch[0]) - batch[0]).square().mean()


@healthy
def without_labels() -> Setup:
    x = table()
    return training(TensorDataset(x[:500]), TensorDataset(x[500:]), nn.Linear(6, 6), _rebuilt)


class Views(Pictures):
    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return flipped(self.x[index]), flipped(self.x[index])


@healthy
def two_views() -> Setup:
    x, y = pictures()
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 8))
    return training(Views(x[:500], y), Views(x[500:], y), model, _rebuilt_views)


def _rebuilt_views(model: nn.Module, batch: list[Tensor]) -> Tensor:
    return (model(batch[0]) - model(batch[1])).square().mean()


class Denoised(Pictures):
    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index] + 0.1 * torch.randn_like(self.x[index]), self.x[index]


@healthy
def denoising() -> Setup:
    x, y = pictures()
    model = nn.Conv2d(1, 1, 1)
    return training(Denoised(x[:500], y), Denoised(x[500:], y), model, nn.MSELoss())


class Generated(Dataset):
    def __len__(self) -> int:
        return 300

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.randn(10) + index % 2, index % 2


@healthy
def made_on_the_fly() -> Setup:
    return training(Generated(), Generated())


class Encoded(Dataset):
    def __init__(self, first: int) -> None:
        self.first = first

    def __len__(self) -> int:
        return 200

    def __getitem__(self, index: int) -> dict[str, Any]:
        numbers = random.Random(self.first + index)
        ids = [numbers.randrange(50) for _ in range(12)]
        return {"input_ids": ids, "attention_mask": [1] * 12, "labels": index % 3}


def _joined(samples: list[dict[str, Any]]) -> dict[str, Tensor]:
    return {name: torch.tensor([each[name] for each in samples]) for name in samples[0]}


@healthy
def dictionaries() -> Setup:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return functional.cross_entropy(model(batch["input_ids"]), batch["labels"])

    train, valid = (DataLoader(Encoded(n), 32, collate_fn=_joined) for n in (0, 1000))
    return training(train, valid, Tokens(3), loss)


class Stream(IterableDataset):
    def __iter__(self) -> Any:
        for _ in range(200):
            x = torch.randn(5)
            yield x, int(x.sum() > 0)


@healthy
def streams() -> Setup:
    return training(DataLoader(Stream(), 32), DataLoader(Stream(), 32))


@healthy
def batches_in_a_list() -> Setup:
    x = table()
    batches = list(zip(x.split(50), (x.sum(1, keepdim=True)).split(50), strict=True))
    return training(batches, None, nn.Linear(6, 1), nn.MSELoss())


@healthy
def the_same_batch_again_and_again() -> Setup:
    x = table(500)
    batch = (x, x.sum(1, keepdim=True) + torch.randn(500, 1))
    return training([batch] * 10, None, nn.Linear(6, 1), nn.MSELoss())


@healthy
def batches_drawn_at_random() -> Setup:
    x = table()
    y = x.sum(1, keepdim=True)
    drawn = [torch.randint(600, (64,)) for _ in range(40)]
    return training([(x[i], y[i]) for i in drawn], None, nn.Linear(6, 1), nn.MSELoss())


@healthy
def strings() -> Setup:
    said = [(f"it was number {random.Random(i).randrange(400)}", i % 2) for i in range(600)]

    def joined(samples: list[tuple[str, int]]) -> tuple[Tensor, Tensor]:
        lengths = [[float(len(text))] for text, _ in samples]
        return torch.tensor(lengths), torch.tensor([label for _, label in samples])

    loaders = (DataLoader(part, 32, collate_fn=joined) for part in (said[:500], said[500:]))
    return training(*loaders)


@healthy
def bytes_of_numpy() -> Setup:
    numbers = np.random.default_rng(0)
    made = [(numbers.integers(0, 256, (8, 8, 3), dtype=np.uint8), i % 4) for i in range(300)]

    def joined(samples: list[tuple[Any, int]]) -> tuple[Tensor, Tensor]:
        stacked = torch.from_numpy(np.stack([x for x, _ in samples])).float()
        return stacked, torch.tensor([label for _, label in samples])

    return training(*(DataLoader(part, 32, collate_fn=joined) for part in (made[:250], made[250:])))


@healthy
def one_in_ten() -> Setup:
    return split(table(), (torch.rand(600) > 0.9).long())


@healthy
def copied_after_splitting() -> Setup:
    x, y = table(), (torch.rand(600) > 0.9).long()
    rare = y[:500].nonzero()[:, 0]
    order = torch.cat([torch.arange(500), rare.repeat(8)])
    return training(TensorDataset(x[order], y[order]), TensorDataset(x[500:], y[500:]))


@healthy
def drawn_by_weight() -> Setup:
    x, y = table(3000), (torch.rand(3000) > 0.98).long()
    sampler = WeightedRandomSampler(torch.where(y == 1, 50.0, 1.0).tolist(), 3000)
    return training(DataLoader(TensorDataset(x, y), 32, sampler=sampler))


@healthy
def weighted_classes() -> Setup:
    loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 50.0]))
    return split(table(), (torch.rand(600) > 0.98).long(), model=nn.Linear(6, 2), loss=loss)


@healthy
def flattened_pictures_with_borders() -> Setup:
    x = functional.pad(torch.rand(600, 10, 10), (2, 2, 2, 2)).flatten(1)
    return split(x, torch.randint(10, (600,)))


@healthy
def column_of_ones() -> Setup:
    return split(torch.cat([table(), torch.ones(600, 1)], 1), torch.randint(2, (600,)))


@healthy
def missing_values_that_are_masked() -> Setup:
    x = table()
    x[torch.rand_like(x) > 0.95] = math.nan

    def loss(model: nn.Module, batch: list[Tensor]) -> Tensor:
        return functional.cross_entropy(model(batch[0].nan_to_num()), batch[1])

    return split(x, torch.randint(2, (600,)), model=nn.Linear(6, 2), loss=loss)


@healthy
def labels_counted_from_one() -> Setup:
    def loss(model: nn.Module, batch: list[Tensor]) -> Tensor:
        return functional.cross_entropy(model(batch[0]), batch[1] - 1)

    return split(table(), 1 + torch.randint(10, (600,)), model=nn.Linear(6, 10), loss=loss)


@healthy
def labels_to_be_ignored() -> Setup:
    y = torch.randint(3, (600, 8, 8))
    y[:, :2] = 255
    loss = nn.CrossEntropyLoss(ignore_index=255)
    return split(torch.rand(600, 1, 8, 8), y, model=nn.Conv2d(1, 3, 1), loss=loss)


@healthy
def samples_with_their_index() -> Setup:
    class Indexed(Pictures):
        def __getitem__(self, index: int) -> Any:
            return self.x[index], self.y[index], index

    def loss(model: nn.Module, batch: list[Tensor]) -> Tensor:
        return functional.cross_entropy(model(batch[0]), batch[1])

    x, y = pictures()
    return training(Indexed(x[:500], y), Indexed(x[500:], y), loss=loss)
