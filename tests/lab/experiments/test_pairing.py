"""Predictions and targets that do not belong together, on small real trainings."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from holter.lab.running import run
from holter.lab.setup import Setup
from holter.record.signals import (
    PAIRING_NOISE_ALIKE,
    PAIRING_NOISE_WHITE,
    PAIRING_ORDER,
    PAIRING_ROWS,
    PAIRING_SHIFT,
    USE_CHANGE,
    USE_SCALE,
)
from lab.experiments.trainings import HEALTHY, adam, checked, loader

RULES = ("scrambled-predictions", "misordered-targets", "shifted-targets")
BATCH, TIME, CLASSES = 8, 11, 7


@pytest.mark.parametrize("kind", HEALTHY)
def test_says_nothing_of_healthy_trainings(kind: str, tmp_path: Path) -> None:
    for rule in RULES:
        assert checked("pairing", rule, HEALTHY[kind](), tmp_path / rule).findings == ()
    assert checked("input-use", "unused-inputs", HEALTHY[kind](), tmp_path / "use").findings == ()


class Reader(nn.Module):
    def __init__(self, *, time_first: bool = False) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(CLASSES, 16), nn.Linear(16, CLASSES)
        self.time_first = time_first

    def forward(self, tokens: Tensor) -> Tensor:
        made = self.head(self.embed(tokens))
        return made.transpose(0, 1) if self.time_first else made


def language(loss: Any, *, shift: int = 1, time_first: bool = False) -> Setup:
    torch.manual_seed(0)
    text = torch.randint(CLASSES, (64, TIME + 8))
    model = Reader(time_first=time_first)

    def step(model: nn.Module, batch: Any) -> Tensor:
        inputs, targets = batch
        return loss(model(inputs), targets)

    start = max(-shift, 0)
    inputs = text[:, start : start + TIME]
    targets = text[:, start + shift : start + shift + TIME]
    return Setup.of(model, adam(model), step, loader(inputs, targets, batch=BATCH))


def flat(logits: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(logits.reshape(-1, CLASSES), targets.reshape(-1))


def transposed(logits: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(logits.transpose(1, 2), targets)


def viewed(logits: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(logits.reshape(len(logits), CLASSES, -1), targets)


def other_order(logits: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(logits.reshape(-1, CLASSES), targets.t().reshape(-1))


@pytest.mark.parametrize(
    ("setup", "rows", "order"),
    [
        (lambda: language(flat), 1.0, 1.0),
        (lambda: language(transposed), 1.0, 1.0),
        (lambda: language(viewed), 0.0, None),
        (lambda: language(other_order), 1.0, 0.0),
        (lambda: language(other_order, time_first=True), 1.0, 1.0),
        (lambda: language(flat, time_first=True), 1.0, 0.0),
    ],
    ids=["flat", "transposed", "viewed", "other", "time first", "time first, not targets"],
)
def test_finds_how_scores_and_targets_lie(
    setup: Any, rows: float, order: float | None, tmp_path: Path
) -> None:
    made = run("pairing", setup(), tmp_path / "run")
    assert made[PAIRING_ROWS][""].values[-1] == pytest.approx(rows, abs=0.1)
    known = made[PAIRING_ORDER][""].values[-1] if PAIRING_ORDER in made else None
    assert known == order


@pytest.mark.parametrize("shift", [1, 2, 3, -1])
def test_finds_the_shift_of_the_targets(shift: int, tmp_path: Path) -> None:
    made = run("pairing", language(flat, shift=shift), tmp_path / "run")
    assert made[PAIRING_SHIFT][""].values[-1] == shift


class LastOnly(nn.Module):
    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place
        self.rnn, self.head = nn.GRU(3, 16, batch_first=True), nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x)[0][:, self.place])


@pytest.mark.parametrize(("place", "used"), [(0, 1), (-1, 12)])
def test_finds_positions_without_effect(place: int, used: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(64, 12, 3)
    model = LastOnly(place)
    data = loader(x, (x.mean((1, 2)) > 0).long(), batch=16)
    setup = Setup.of(model, adam(model), nn.CrossEntropyLoss(), data)
    changes = run("input-use", setup, tmp_path / "run")[USE_CHANGE]["positions of x"].values
    assert int((changes > 1e-6).sum()) == used
    said = checked("input-use", "unused-inputs", setup, tmp_path / "again")
    assert bool(said.findings) is (used == 1)


def denoised(noise: Tensor, *, smooth: bool = False) -> Setup:
    """Waves with noise, or with a slope, that is to be removed."""
    torch.manual_seed(0)
    phase = 6 * torch.rand(64, 1)
    clean = torch.sin(phase + 0.2 * torch.arange(64))
    noisy = clean + (noise.sort(1).values if smooth else noise)
    model = nn.Linear(64, 64)
    return Setup.of(model, adam(model), nn.MSELoss(), loader(noisy, clean))


@pytest.mark.parametrize(
    ("rows", "smooth", "alike", "white"),
    [(1, False, True, True), (64, False, False, True), (1, True, True, False)],
    ids=["the same noise", "independent noise", "the same slope"],
)
def test_noise_between_inputs_and_targets(
    rows: int, *, smooth: bool, alike: bool, white: bool, tmp_path: Path
) -> None:
    noise = torch.randn(rows, 64, generator=torch.Generator().manual_seed(1)).expand(64, 64)
    made = run("pairing", denoised(noise, smooth=smooth), tmp_path / "run")
    assert bool(made[PAIRING_NOISE_ALIKE][""].values[0] > 0.9) is alike
    assert bool(abs(made[PAIRING_NOISE_WHITE][""].values[0]) < 0.3) is white


def test_columns_of_numbers_have_a_scale(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(256, 3) * torch.tensor([1.0, 0.01, 1.0])
    x[:, 2] = x[:, 2].sign()  # a category
    model = nn.Linear(3, 1)
    setup = Setup.of(model, adam(model), nn.MSELoss(), loader(x, x[:, :1]))
    scales = run("input-use", setup, tmp_path / "run")[USE_SCALE]["columns of input"]
    assert scales.steps.tolist() == [0, 1]
    assert scales.values == pytest.approx([1.0, 0.01], rel=0.5)
