"""Old tasks: their losses are logged, and the training goes on bit for bit as without them."""

import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import holter
from holter.record.events import HolterFailed
from holter.record.signals import METRIC_LOGGED

OLD = TensorDataset(torch.randn(20, 4), torch.randint(0, 3, (20,)))


def training():
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    model = nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3)
    )
    data = TensorDataset(torch.randn(24, 4), torch.randint(0, 3, (24,)))
    loader = DataLoader(data, 8, shuffle=True)
    return model, torch.optim.Adam(model.parameters(), lr=0.01), loader


def train(model, optimizer, loader, epochs=3):
    for _ in range(epochs):
        for x, y in loader:
            loss = functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    state = [each.clone() for each in model.state_dict().values()]
    return state, torch.rand(2), random.random(), np.random.rand()


def careless(model):
    """A function that changes modes, statistics and random numbers."""

    def evaluate():
        model.train()
        random.random()
        np.random.rand()
        return functional.cross_entropy(model(OLD.tensors[0]), OLD.tensors[1])

    return evaluate


@pytest.mark.parametrize("kind", ["loader", "shuffled", "function"])
def test_training_is_bit_identical(tmp_path, kind):
    wanted = train(*training())
    model, optimizer, loader = training()
    task = {
        "loader": DataLoader(OLD, 10),
        "shuffled": DataLoader(OLD, 10, shuffle=True),
        "function": careless(model),
    }[kind]
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True, also={"old": task}):
        found = train(model, optimizer, loader)
    for ours, theirs in zip(found[0], wanted[0], strict=True):
        assert torch.equal(ours, theirs)
    assert torch.equal(found[1], wanted[1])
    assert found[2:] == wanted[2:]
    run = holter.Run.load(tmp_path / "run")
    assert not run.events_of(HolterFailed)
    assert run[METRIC_LOGGED]["also.old"].steps.tolist() == [0, 3, 6, 8]


def test_the_losses_are_those_of_the_old_data(tmp_path):
    model, optimizer, loader = training()

    def loss():
        modes = [module.training for module in model.modules()]
        model.eval()
        with torch.no_grad():
            value = functional.cross_entropy(model(OLD.tensors[0]), OLD.tensors[1]).item()
        for module, mode in zip(model.modules(), modes, strict=True):
            module.training = mode
        return value

    also = {"old": DataLoader(OLD, 6)}
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True, also=also):
        train(model, optimizer, loader, epochs=2)
    losses = holter.Run.load(tmp_path / "run")[METRIC_LOGGED]["also.old"].values
    assert losses[-1] == pytest.approx(loss(), rel=1e-5)


def test_validation_ends_count_as_epochs_without_loaders(tmp_path):
    model, optimizer, _ = training()
    x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True, also={"old": lambda: 1.5}):
        for _ in range(3):
            model.train()
            for _ in range(4):
                optimizer.zero_grad()
                functional.cross_entropy(model(x), y).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                functional.cross_entropy(model(x), y)
    losses = holter.Run.load(tmp_path / "run")[METRIC_LOGGED]["also.old"]
    assert losses.steps.tolist() == [0, 4, 8, 11]
    assert losses.values.tolist() == [1.5] * 4


def test_a_task_that_raises_is_left_out(tmp_path, capfd):
    model, optimizer, loader = training()
    also = {"broken": DataLoader(TensorDataset(torch.randn(4, 9), torch.zeros(4).long()), 2)}
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True, also=also):
        train(model, optimizer, loader)
    run = holter.Run.load(tmp_path / "run")
    assert METRIC_LOGGED not in run
    assert len(run.events_of(HolterFailed)) == 1
    assert "evaluating broken failed" in capfd.readouterr().err
