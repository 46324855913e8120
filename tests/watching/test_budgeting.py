"""The budget: what is read of which step, and what that comes to."""

import numpy as np
import pytest
import torch
from torch import nn

import holter
from holter.record.signals import GRAD_NORM, LOSS, UPDATE_RATIO, VAL_LOSS
from holter.watching import budget as budgeting
from holter.watching.budget import ALERT_STEPS, ALLOWANCE, Budget
from holter.watching.collectors.moments import Depth

COSTS = {Depth.NONE: 0.0, Depth.LIGHT: 4e-5, Depth.REGULAR: 5e-4, Depth.FULL: 2e-3}


def train(budget: Budget, length: float, steps: int) -> float:
    """Steps of some length, watched as the budget says; the share of the time it took."""
    spent = 0.0
    for step in range(steps):
        depth = budget.depth(step)
        spent += COSTS[depth]
        if depth is not Depth.NONE:
            budget.account(depth, COSTS[depth], length)
    return spent / (steps * length)


@pytest.mark.parametrize("length", [5e-4, 5e-3, 5e-2, 0.5])
@pytest.mark.parametrize("share", [0.01, 0.05])
def test_the_share_is_kept_once_the_allowance_is_spent(length: float, share: float) -> None:
    budget = Budget(share)
    train(budget, length, 2_000)
    later = train(budget, length, 20_000)
    least = COSTS[Depth.LIGHT] / budgeting._RAREST_LOSS / length  # losses are never given up
    assert later <= max(share, 2 * least) * 1.05


def test_short_runs_are_read_whole() -> None:
    budget = Budget(0.01)
    steps = int(ALLOWANCE / COSTS[Depth.FULL])
    depths = []
    for step in range(steps):
        depths.append(budget.depth(step))
        budget.account(depths[-1], COSTS[depths[-1]], 1e-3)
    assert set(depths) == {Depth.FULL}


def test_long_steps_are_read_whole_for_ever() -> None:
    budget = Budget(0.01)
    train(budget, 10.0, 1_000)
    assert set(budget.every.values()) == {1}


def test_without_a_share_everything_is_read() -> None:
    budget = Budget(None)
    train(budget, 1e-4, 5_000)
    assert {budget.depth(step) for step in range(5_000, 5_100)} == {Depth.FULL}


def test_a_deep_step_is_a_step_of_each_lesser_depth() -> None:
    budget = Budget(0.01)
    train(budget, 2e-3, 5_000)
    light, regular, full = (budget.every[d] for d in (Depth.LIGHT, Depth.REGULAR, Depth.FULL))
    assert regular % light == full % regular == 0
    assert light < regular <= full


def test_an_alert_reads_the_next_steps_whole() -> None:
    budget = Budget(0.01)
    train(budget, 1e-3, 5_000)
    budget.alert(5_001)
    assert {budget.depth(s) for s in range(5_001, 5_001 + ALERT_STEPS)} == {Depth.FULL}
    assert budget.depth(5_003 + ALERT_STEPS) is not Depth.FULL


def test_the_first_steps_in_which_kernels_are_compiled_teach_nothing() -> None:
    slow, usual = Budget(0.01), Budget(0.01)
    for _ in range(3):
        slow.account(Depth.FULL, 5.0, 5.0)
        usual.account(Depth.FULL, 2e-3, 2e-3)
    assert train(slow, 5e-3, 3_000) == train(usual, 5e-3, 3_000)


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5])
def test_a_share_is_a_share(share: float, tmp_path) -> None:
    model = nn.Linear(1, 1)
    with pytest.raises(ValueError, match="share"):
        holter.watch(model, torch.optim.SGD(model.parameters()), tmp_path / "run", budget=share)


def test_steps_that_are_not_read_still_count(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(budgeting, "ALLOWANCE", 0.002)
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
    series = run[LOSS][""]
    late = series.steps[series.steps > 300]
    # The step with the validation is read, too.
    assert (late[late != 851] % budgeting._RAREST_LOSS == 0).all()
    assert len(late) >= 30
    np.testing.assert_allclose(series.values, np.array(losses)[series.steps], rtol=1e-5)
    assert len(run[GRAD_NORM]["weight"]) < len(series)
    assert len(run[UPDATE_RATIO]["weight"]) <= len(run[GRAD_NORM]["weight"])
    (validated,) = run[VAL_LOSS]["mse_loss"].steps
    assert 850 <= validated <= 851
    assert run[VAL_LOSS]["mse_loss"].values[0] == pytest.approx(held_out)


def test_a_bad_loss_has_its_neighbours_read_whole(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(budgeting, "ALLOWANCE", 0.002)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True, budget=0.05):
        for step in range(400):
            loss = model(torch.full((2, 4), float("nan") if step >= 300 else 1.0)).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    read = holter.Run.load(tmp_path / "run")[GRAD_NORM]["weight"].steps
    assert len(read[(read > 200) & (read < 300)]) < 50
    assert len(read[(read >= 300) & (read < 330)]) >= ALERT_STEPS - 2
