"""The budget: what is read of which step, and what that comes to."""

import numpy as np
import pytest
import torch
from torch import nn

import holter
from holter.record.signals import (
    GRAD_CARRIED_FRACTION,
    GRAD_NORM,
    LOSS,
    LR,
    MODE_TRAINING,
    UPDATE_RATIO,
    VAL_LOSS,
)
from holter.watching import budget as budgeting
from holter.watching.budget import ALERT_STEPS, ALLOWANCE, Budget
from holter.watching.collectors.moments import Depth

COSTS = {Depth.LIGHT: 2e-5, Depth.REGULAR: 5e-4, Depth.FULL: 2e-3}


def train(budget: Budget, length: float, first: int, last: int) -> float:
    """Steps of some length, watched as the budget says; the share of the time it took."""
    spent = 0.0
    for step in range(first, last):
        depth = budget.depth(step)
        spent += COSTS[depth]
        budget.account(depth, COSTS[depth], length)
    return spent / ((last - first) * length)


@pytest.mark.parametrize("length", [5e-4, 5e-3, 5e-2, 0.5])
@pytest.mark.parametrize("share", [0.01, 0.05])
def test_the_share_is_kept_once_the_allowance_is_spent(length: float, share: float) -> None:
    budget = Budget(share)
    train(budget, length, 0, 2_000)
    later = train(budget, length, 2_000, 42_000)
    light = COSTS[Depth.LIGHT] / length  # losses are read at every step
    spare = budgeting._SPARE / (40_000 * length)
    assert later <= max(share, light + 0.2 * share) * 1.05 + spare


def test_short_runs_are_read_whole() -> None:
    budget = Budget(0.01)
    steps = int(ALLOWANCE / COSTS[Depth.FULL])
    depths = []
    for step in range(steps):
        depths.append(budget.depth(step))
        budget.account(depths[-1], COSTS[depths[-1]], 1e-3)
    assert set(depths) == {Depth.FULL}


@pytest.mark.parametrize("length", [1e-2, 2.8e-2, 0.2])
@pytest.mark.parametrize("full", [2e-3, 5e-3])
def test_no_training_of_forty_seconds_pays_more_than_a_share(monkeypatch, length, full) -> None:
    monkeypatch.setitem(COSTS, Depth.FULL, full)
    budget, spent, elapsed, shares = Budget(0.01), 0.0, 0.0, []
    for step in range(int(120 / length)):
        depth = budget.depth(step)
        budget.account(depth, COSTS[depth], length)
        spent, elapsed = spent + COSTS[depth], elapsed + length
        if elapsed > 40:
            shares.append(spent / elapsed)
    assert max(shares) < 0.06
    assert shares[-1] < 0.03
    assert budget.depth(0) is Depth.FULL


def test_long_steps_are_read_whole_for_ever() -> None:
    budget = Budget(0.01)
    train(budget, 10.0, 0, 1_000)
    assert set(budget.every.values()) == {1}


def test_without_a_share_everything_is_read() -> None:
    budget = Budget(None)
    train(budget, 1e-4, 0, 5_000)
    assert {budget.depth(step) for step in range(5_000, 5_100)} == {Depth.FULL}


def sampled(monkeypatch, length: float, steps: int) -> dict[Depth, list[int]]:
    """Steps of each depth in a run without an allowance."""
    monkeypatch.setattr(budgeting, "ALLOWANCE", 0.0)
    budget, depths = Budget(0.01), {depth: [] for depth in Depth}
    for step in range(steps):
        depth = budget.depth(step)
        depths[depth].append(step)
        budget.account(depth, COSTS[depth], length)
    return depths


@pytest.mark.parametrize("length", [5e-4, 1e-2, 0.2])
def test_deep_steps_are_spread_over_the_whole_run_and_dense_at_its_beginning(monkeypatch, length):
    steps = 20_000
    depths = sampled(monkeypatch, length, steps)
    full = np.array(depths[Depth.FULL])
    assert full[:16].tolist() == list(range(16))
    for first in (64, 512, 4096):  # each doubling of the run has its share
        assert len(full[(full >= first) & (full < 2 * first)]) >= 3, first
    gaps = np.diff(full)
    assert gaps.max() < steps / 5
    assert len(depths[Depth.REGULAR]) > len(full)


def test_of_two_trainings_that_take_turns_both_are_read(monkeypatch):
    full = np.array(sampled(monkeypatch, 5e-4, 20_000)[Depth.FULL])
    late = full[full > 100]
    assert 0.3 < (late % 2).mean() < 0.7


def test_an_alert_reads_the_next_steps_whole() -> None:
    budget = Budget(0.01)
    train(budget, 1e-3, 0, 5_000)
    budget.alert(5_001)
    assert {budget.depth(s) for s in range(5_001, 5_001 + ALERT_STEPS)} == {Depth.FULL}
    assert budget.depth(5_003 + ALERT_STEPS) is not Depth.FULL


def test_alerts_have_a_share_of_their_own() -> None:
    budget = Budget(0.01)
    train(budget, 1e-3, 0, 5_000)
    read = 0
    for step in range(5_000, 105_000):  # something odd at every tenth step
        if step % 10 == 0:
            budget.alert(step)
        depth = budget.depth(step)
        read += depth is Depth.FULL
        budget.account(depth, COSTS[depth], 1e-3)
    assert read * COSTS[Depth.FULL] < 4.0  # of 100 seconds: alerts, samples, and the spare time


def test_the_first_steps_in_which_kernels_are_compiled_teach_nothing() -> None:
    slow, usual = Budget(0.01), Budget(0.01)
    for _ in range(3):
        slow.account(Depth.FULL, 5.0, 5.0)
        usual.account(Depth.FULL, 2e-3, 2e-3)
    assert train(slow, 5e-3, 3, 3_000) == train(usual, 5e-3, 3, 3_000)


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5])
def test_a_share_is_a_share(share: float, tmp_path) -> None:
    model = nn.Linear(1, 1)
    with pytest.raises(ValueError, match="share"):
        holter.watch(model, torch.optim.SGD(model.parameters()), tmp_path / "run", budget=share)


def test_losses_are_read_at_every_step_whatever_the_budget(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(budgeting, "ALLOWANCE", 0.0)
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(16, 4)
    losses = []
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True, budget=1e-6) as w:
        for step in range(900):
            loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if step == 850:
                with torch.no_grad():
                    held_out = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).item()
    assert w.steps == 900
    run = holter.Run.load(tmp_path / "run")
    assert run.meta.steps == 900
    assert run[LOSS][""].steps.tolist() == list(range(900))
    np.testing.assert_allclose(run[LOSS][""].values, losses, rtol=1e-5)
    for signal in (LR, MODE_TRAINING, GRAD_CARRIED_FRACTION):
        (owner,) = run[signal]
        assert len(run[signal][owner]) >= 899, signal  # of the first step nothing is carried
    norms, updates = run[GRAD_NORM]["weight"].steps, run[UPDATE_RATIO]["weight"].steps
    assert 30 < len(norms) < 500
    assert len(updates) < len(norms)
    assert run[VAL_LOSS]["mse_loss"].steps.tolist() == [850]
    assert run[VAL_LOSS]["mse_loss"].values[0] == pytest.approx(held_out)


def test_a_bad_loss_has_its_neighbours_read_whole(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(budgeting, "ALLOWANCE", 0.0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True, budget=0.05):
        for step in range(400):
            loss = model(torch.full((2, 4), float("nan") if step >= 300 else 1.0)).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    read = holter.Run.load(tmp_path / "run")[UPDATE_RATIO]["weight"].steps
    assert len(read[(read > 200) & (read < 300)]) < 50
    assert len(read[(read >= 300) & (read < 330)]) >= ALERT_STEPS - 2


def test_steps_of_no_length_are_read_too() -> None:
    budget = Budget(0.01)
    for step in range(3_000):
        depth = budget.depth(step)
        budget.account(depth, COSTS[depth], 0.0)
    assert Depth.LIGHT in {budget.depth(step) for step in range(3_000, 3_100)}


def test_what_prepares_a_deeper_step_is_part_of_its_cost() -> None:
    budget, length = Budget(0.01), 2.4e-2
    for step in range(2_000):
        if step % 8 == 7:  # the step before a deeper one
            budget.account(Depth.LIGHT, 4e-3, length, prepares=True)
        elif step % 8 == 0:
            budget.account(Depth.REGULAR, 1e-3, length)
        else:
            is_dense = step % 2 == 0
            budget.account(Depth.LIGHT, 2e-3 if is_dense else 5e-4, length, dense=is_dense)
    assert budget.cost(Depth.LIGHT) == pytest.approx(5e-4)
    assert budget.cost(Depth.REGULAR) == pytest.approx(4.5e-3, rel=0.01)
    assert budget.every_dense > 8
