"""Experiments in the middle of a training that is watched: it goes on as if nothing had been."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import holter
from holter.lab.experiments import all_experiments
from holter.lab.running import run
from holter.record import Run
from holter.record.errors import HolterError
from holter.record.events import ExperimentMade, NotApplicable
from holter.record.signals import ACTIVATION_STD, GRAD_TOTAL_NORM, INPUT_FINGERPRINT, LOSS

STEPS, AT = 24, 9


def train(folder: Path, *experiments: str) -> tuple[Run, nn.Module]:
    """A training in whose step 9 experiments are made."""
    torch.manual_seed(0)
    rows = torch.randn(512, 6)
    labels = (rows[:, 0] > 0).long()
    loader = DataLoader(TensorDataset(rows, labels), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    criterion = nn.CrossEntropyLoss()
    with holter.watch(model, optimizer, out=folder / "run", budget=None) as w:
        for step, (x, y) in enumerate(loader):
            if step == AT:
                setup = holter.Setup.of_watch(w, criterion, loader)
                for name in experiments:
                    run(name, setup, folder / name)
            if step == STEPS:
                break
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
    return Run.load(folder / "run"), model


def test_the_training_and_its_recording_are_as_without(tmp_path: Path) -> None:
    without, plain = train(tmp_path / "without")
    tried, model = train(tmp_path / "with", "overfit-batch", "sharpness", "input-control")
    for ours, theirs in zip(plain.parameters(), model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert tried.steps == without.steps == STEPS
    for signal in (LOSS, GRAD_TOTAL_NORM, ACTIVATION_STD, INPUT_FINGERPRINT):
        for owner, series in without[signal].items():
            assert np.array_equal(series.steps, tried[signal][owner].steps)
            assert np.array_equal(series.values, tried[signal][owner].values)
    made = Run.load(tmp_path / "with" / "overfit-batch")
    assert [event.what.experiment for event in made.events_of(ExperimentMade)] == ["overfit-batch"]
    assert not made.events_of(NotApplicable)


def test_all_of_preflight_fits_into_a_training(tmp_path: Path) -> None:
    names = [name for name, each in all_experiments().items() if each.preflight]
    _, plain = train(tmp_path / "without")
    _, model = train(tmp_path / "with", *names)
    for ours, theirs in zip(plain.parameters(), model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_several_models_are_a_setup_of_phases(tmp_path: Path) -> None:
    one, other = nn.Linear(2, 2), nn.Linear(2, 2)
    optimizers = {
        name: torch.optim.SGD(each.parameters(), lr=0.1)
        for name, each in (("one", one), ("other", other))
    }
    with (
        holter.watch({"one": one, "other": other}, optimizers, out=tmp_path / "run") as w,
        pytest.raises(HolterError, match="2 models and 2 optimizers"),
    ):
        holter.Setup.of_watch(w, nn.MSELoss(), [])
