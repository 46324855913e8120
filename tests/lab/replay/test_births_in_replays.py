"""Births in updates and under accumulation, as a replay of a captured failure names them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from failures import failed, window
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import holter
from holter import check, diagnose
from holter.diagnosis.facts.replays import Replayed, replayed
from holter.lab.replay.dataset_indices import dataset_indices
from holter.lab.replay.investigating import whole
from holter.lab.replay.window import FailureWindow
from holter.lab.setup import Setup
from holter.lab.writing import Lab
from holter.watching.blackbox.capture import captures_in, load_capture

ROWS, TOGETHER = 8, 4
BAD = 8 * 41 + 5  # sample 5 of the second batch of step 10


def of_unit_length(model: nn.Module, batch: list[Tensor]) -> Tensor:
    inputs, targets = batch
    unit = inputs / inputs.norm(dim=1, keepdim=True)
    return nn.functional.mse_loss(model(unit), targets) / TOGETHER


def investigated(path: Path, setup: Setup) -> Replayed:
    with Lab(path) as lab:
        list(whole(window(path, setup), lab))
    told = replayed(holter.Run.load(path))
    assert told is not None
    return told


def accumulating() -> Setup:
    torch.manual_seed(0)
    x = torch.randn(512, 6)
    y = x.sum(1, keepdim=True)
    x[BAD] = 0
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return Setup.of(model, optimizer, of_unit_length, DataLoader(TensorDataset(x, y), ROWS))


def test_a_sample_of_an_accumulated_step_is_named_by_batch_and_by_index(tmp_path: Path) -> None:
    setup = accumulating()
    (optimizer,) = setup.optimizers
    with holter.watch(setup.model, optimizer, tmp_path / "run", quiet=True, budget=None):
        for place, batch in enumerate(setup.train, 1):
            setup.loss(batch).backward()
            if place % TOGETHER == 0:
                optimizer.step()
                optimizer.zero_grad()
    told = investigated(tmp_path / "run", accumulating())
    birth = told.birth
    assert birth is not None
    assert (birth.kind, birth.samples, birth.indices) == ("zero norm", (5,), (BAD,))
    assert (birth.micro_batch, birth.micro_batches) == (1, TOGETHER)
    assert f"in batch 2 of the {TOGETHER} that make the step; index {BAD}" in birth.says
    assert told.triage is not None
    assert told.triage.samples == (5,)
    assert "guarded div" in told.cured_by("guard")


def without_epsilon(*, fused: bool) -> Setup:
    torch.manual_seed(0)
    x = torch.randn(256, 6)
    y = x.sum(1, keepdim=True)
    x[:, 3] = 0
    model = nn.Linear(6, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=0, fused=fused)
    return Setup.of(model, optimizer, nn.MSELoss(), DataLoader(TensorDataset(x, y), 16))


@pytest.mark.parametrize("fused", [False, True])
def test_an_update_that_divides_by_zero_is_named(tmp_path: Path, fused: bool) -> None:
    path = failed(tmp_path / "run", without_epsilon(fused=fused), epochs=1)
    told = investigated(path, without_epsilon(fused=fused))
    birth = told.birth
    assert birth is not None
    assert (birth.phase, birth.kind, birth.operation) == ("update", "zero by zero", "addcdiv")
    assert birth.parameter == "weight"
    assert {state.partition(" of ")[0] for state in birth.states} == {"exp_avg", "exp_avg_sq"}
    assert told.cured_by("state") == ["larger epsilon"]
    leading = diagnose(check(holter.Run.load(path))).leading
    assert leading is not None
    assert leading.rule == "nonfinite-birth"
    assert "eps=1e-8" in leading.fix


class Squares(Dataset[tuple[Tensor, Tensor]]):
    """A data set that is no table of tensors; every second sample stands in it twice."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        number = torch.tensor(float(index if index % 2 or index > 20 else 0))
        return number, number.square()


def test_indices_are_those_of_samples_that_stand_there_once() -> None:
    model = nn.Linear(1, 1)
    loader = DataLoader(Squares(), 10, shuffle=True)
    setup = Setup.of(model, torch.optim.SGD(model.parameters(), 0.1), nn.MSELoss(), loader)
    before = torch.get_rng_state()
    batch = [torch.tensor([7.0, 0.0, 33.0]), torch.tensor([49.0, 0.0, 1089.0])]
    assert dataset_indices(setup, batch, (0, 2)) == (7, 33)
    assert dataset_indices(setup, batch, (1,)) == ()
    assert torch.equal(before, torch.get_rng_state())


class Arrays(Dataset[tuple[Any, int]]):
    """Samples as numpy has them."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return np.full(3, index, np.float32), index % 2


def test_indices_of_arrays_and_numbers_are_found() -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    setup = Setup.of(model, optimizer, nn.CrossEntropyLoss(), DataLoader(Arrays(), 10))
    batch = [torch.tensor([[7.0] * 3, [8.0] * 3]), torch.tensor([1, 0])]
    assert dataset_indices(setup, batch, (0, 1)) == (7, 8)


def test_a_sample_that_is_not_in_the_data_set_has_no_index() -> None:
    setup = accumulating()
    inputs, targets = next(iter(setup.train))
    assert dataset_indices(setup, [inputs, targets], (3,)) == (3,)
    assert dataset_indices(setup, [inputs + 1, targets], (3,)) == ()


def steps_that_grow() -> Setup:
    torch.manual_seed(0)
    x = torch.randn(4096, 4)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = TensorDataset(x, x.sum(1, keepdim=True) + 0.1 * torch.randn(4096, 1))
    return Setup.of(model, optimizer, nn.MSELoss(), DataLoader(data, 16))


def test_a_training_that_left_its_course_names_what_it_ends_in(tmp_path: Path) -> None:
    setup, path = steps_that_grow(), tmp_path / "run"
    (optimizer,) = setup.optimizers
    with holter.watch(setup.model, optimizer, path, quiet=True, budget=None):
        for step, batch in enumerate(setup.train):
            optimizer.param_groups[0]["lr"] = 0.05 if step < 80 else 1.5
            optimizer.zero_grad()
            setup.loss(batch).backward()
            optimizer.step()
    rise, *_, end = [load_capture(each) for each in captures_in(path)]
    assert (rise.alarm.kind, end.alarm.kind) == ("spike", "nonfinite")
    again, run = steps_that_grow(), holter.Run.load(path)
    windows = [FailureWindow(again, each, run) for each in (rise, end)]
    with Lab(path) as lab:
        list(whole(windows[0], lab, later=windows[1]))
    told = replayed(holter.Run.load(path))
    assert told is not None
    assert told.birth is not None
    assert told.is_born_later
    assert told.born_at == end.alarm.step > told.failing >= 80
    leading = diagnose(check(holter.Run.load(path))).leading
    assert leading is not None
    assert leading.rule == "oversized-steps"
