"""Hyperparameters of every group as they are when the step begins."""

import pytest
import torch
from torch import nn

from holter import Run
from holter.record.signals import BETA1, BETA2, LR, MOMENTUM, WEIGHT_DECAY
from watching.collectors.trainings import values, watching


def train(path, optimizer_of, steps=3, between=lambda optimizer, step: None):
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    optimizer = optimizer_of(model)
    with watching(path, model, optimizer):
        for step in range(steps):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            between(optimizer, step)
    return Run.load(path)


def test_groups_of_their_own(tmp_path):
    def made(model):
        return torch.optim.SGD(
            [
                {"params": model[0].parameters(), "lr": 0.1, "momentum": 0.9},
                {"params": model[1].parameters(), "lr": 0.01, "weight_decay": 0.5},
            ],
        )

    run = train(tmp_path / "run", made)
    assert values(run, LR, "group 0") == pytest.approx([0.1] * 3)
    assert values(run, LR, "group 1") == pytest.approx([0.01] * 3)
    assert values(run, MOMENTUM, "group 0") == pytest.approx([0.9] * 3)
    assert values(run, MOMENTUM, "group 1") == [0] * 3
    assert values(run, WEIGHT_DECAY, "group 1") == [0.5] * 3
    assert BETA1 not in run


def test_betas_and_no_momentum(tmp_path):
    run = train(
        tmp_path / "run", lambda m: torch.optim.Adam(m.parameters(), lr=0.1, betas=(0.8, 0.95))
    )
    assert values(run, BETA1, "group 0") == pytest.approx([0.8] * 3)
    assert values(run, BETA2, "group 0") == pytest.approx([0.95] * 3)
    assert MOMENTUM not in run


def test_a_tensor_learning_rate_changed_in_place_later(tmp_path):
    def halve(optimizer, step):
        optimizer.param_groups[0]["lr"].mul_(0.5)

    run = train(
        tmp_path / "run",
        lambda m: torch.optim.SGD(m.parameters(), lr=torch.tensor(0.8), foreach=False),
        between=halve,
    )
    assert values(run, LR, "group 0") == pytest.approx([0.8, 0.4, 0.2])


def test_a_quantity_that_only_one_group_has(tmp_path):
    def drop(optimizer, step):
        optimizer.param_groups[0].pop("weight_decay", None) if step < 0 else None

    def made(model):
        optimizer = torch.optim.SGD([{"params": m.parameters()} for m in model], lr=0.1)
        optimizer.param_groups[1]["betas"] = (0.3, 0.4)
        return optimizer

    run = train(tmp_path / "run", made, between=drop)
    assert "group 0" not in run[BETA1] or len(run[BETA1]["group 0"]) == 0
    assert values(run, BETA1, "group 1") == pytest.approx([0.3] * 3)


def test_the_value_at_the_step_not_after_it(tmp_path):
    def schedule(optimizer, step):
        optimizer.param_groups[0]["lr"] = 0.1 * (step + 2)

    run = train(tmp_path / "run", lambda m: torch.optim.SGD(m.parameters(), lr=0.1), 4, schedule)
    assert values(run, LR, "group 0") == pytest.approx([0.1, 0.2, 0.3, 0.4])
