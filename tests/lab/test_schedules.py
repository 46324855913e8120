"""Schedules that are ready to use: what they give is what was drawn."""

import copy

import pytest
import torch
from torch import nn

import holter
from holter.lab.schedules import OneCycle, WarmupCosine
from holter.watching.schedules import facts


def optimizer(**how: float) -> torch.optim.Optimizer:
    return torch.optim.SGD(nn.Linear(2, 2).parameters(), **{"lr": 0.1, **how})


def rates(made: torch.optim.Optimizer, schedule: torch.optim.lr_scheduler.LRScheduler, steps: int):
    for _ in range(steps):
        yield made.param_groups[0]["lr"]
        made.step()
        schedule.step()


def test_warmup_cosine_gives_what_was_drawn() -> None:
    made = optimizer()
    schedule = holter.warmup_cosine(made, warmup=10, steps=100, floor=0.1)
    drawn = [0.1 * WarmupCosine(10, 100, 0.1)(step) for step in range(120)]
    assert list(rates(made, schedule, 120)) == pytest.approx(drawn)


def test_warmup_cosine_at_its_corners() -> None:
    share = WarmupCosine(warmup=10, steps=110, floor=0.2)
    assert share(0) == pytest.approx(0.1)
    assert share(9) == share(10) == 1.0
    assert share(60) == pytest.approx(0.6)
    assert share(109) == pytest.approx(0.2, abs=1e-3)
    assert share(110) == share(1000) == pytest.approx(0.2)
    assert WarmupCosine(warmup=0, steps=10)(0) == 1.0


@pytest.mark.parametrize("warmup", [None, 20])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_one_cycle_gives_what_was_drawn(warmup: int | None, momentum: float) -> None:
    made = optimizer(momentum=momentum)
    schedule = holter.one_cycle(made, peak=0.5, steps=100, warmup=warmup)
    drawn = [0.5 * OneCycle(100, warmup)(step) for step in range(100)]
    assert list(rates(made, schedule, 99)) == pytest.approx(drawn[:99])
    assert max(drawn) == pytest.approx(0.5)
    assert schedule.get_last_lr()[0] == pytest.approx(drawn[99])


def test_groups_keep_their_proportions() -> None:
    layers = nn.Linear(2, 2), nn.Linear(2, 2)
    groups = [{"params": layers[0].parameters(), "lr": 0.01}, {"params": layers[1].parameters()}]
    made = torch.optim.AdamW(groups, lr=0.1)
    holter.warmup_cosine(made, warmup=4, steps=10)
    assert [group["lr"] for group in made.param_groups] == pytest.approx([0.0025, 0.025])


def test_a_checkpoint_brings_the_schedule_back() -> None:
    made = optimizer()
    schedule = holter.warmup_cosine(made, warmup=5, steps=50)
    list(rates(made, schedule, 20))
    saved = copy.deepcopy((made.state_dict(), schedule.state_dict()))
    further = list(rates(made, schedule, 10))
    resumed = optimizer()
    again = holter.warmup_cosine(resumed, warmup=5, steps=50)
    resumed.load_state_dict(saved[0])
    again.load_state_dict(saved[1])
    assert list(rates(resumed, again, 10)) == pytest.approx(further)


def test_holter_knows_how_long_they_are() -> None:
    assert facts(holter.warmup_cosine(optimizer(), warmup=5, steps=50)).horizon == 50
    assert facts(holter.one_cycle(optimizer(), peak=1.0, steps=60)).horizon == 60


@pytest.mark.parametrize(
    "make",
    [
        lambda: WarmupCosine(warmup=10, steps=10),
        lambda: WarmupCosine(warmup=-1, steps=10),
        lambda: WarmupCosine(warmup=1, steps=10, floor=1.5),
        lambda: OneCycle(1),
        lambda: OneCycle(10, warmup=10),
    ],
)
def test_what_is_no_schedule(make: object) -> None:
    with pytest.raises(ValueError, match="is"):
        make()
