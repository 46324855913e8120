"""What clipping measured, and how often schedulers were stepped."""

import math

import pytest
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_ as imported_before_the_watch
from torch.optim import lr_scheduler

from holter import Run
from holter.record.events import HolterFailed, SchedulerSeen
from holter.record.signals import (
    CLIP_COEFFICIENT,
    CLIP_LATE,
    CLIP_LIMIT,
    CLIP_NORM,
    CLIP_SCALED,
    GRAD_NORM,
    SCHEDULE_STEPS,
)
from holter.watching.budget import Budget
from holter.watching.collectors.moments import Depth
from watching.collectors.trainings import values, watching


def step(model, optimizer, clip=lambda parameters: None):
    optimizer.zero_grad()
    (3 * model(torch.ones(1, 4)).sum()).backward()  # a gradient of 3 in each of 4 weights: norm 6
    clip(model.parameters())
    optimizer.step()


@pytest.fixture
def model():
    return nn.Linear(4, 1, bias=False)


@pytest.fixture
def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.001)


@pytest.mark.parametrize(("limit", "factor"), [(2.0, 1 / 3), (60.0, 1.0), (math.inf, 1.0)])
def test_by_norm(tmp_path, model, optimizer, limit, factor):
    with watching(tmp_path / "run", model, optimizer):
        step(model, optimizer, lambda p: nn.utils.clip_grad_norm_(p, max_norm=limit))
        left = float(model.weight.grad.norm())
    run = Run.load(tmp_path / "run")
    assert values(run, CLIP_NORM) == [pytest.approx(6)]
    assert values(run, CLIP_LIMIT) == [limit]
    assert values(run, CLIP_COEFFICIENT) == [pytest.approx(factor, rel=1e-5)]
    assert left == pytest.approx(6 * factor, rel=1e-5)


def test_by_value(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        step(model, optimizer, lambda p: nn.utils.clip_grad_value_(p, clip_value=0.5))
        assert model.weight.grad.tolist() == [[0.5] * 4]
    run = Run.load(tmp_path / "run")
    assert values(run, CLIP_LIMIT) == [0.5]
    assert CLIP_NORM not in run


def test_a_norm_that_is_not_finite(tmp_path, model, optimizer):
    def poison(parameters):
        model.weight.grad[0, 0] = math.inf
        nn.utils.clip_grad_norm_(parameters, 1.0)

    with watching(tmp_path / "run", model, optimizer):
        step(model, optimizer, poison)
    run = Run.load(tmp_path / "run")
    assert values(run, CLIP_NORM) == [math.inf]
    assert values(run, CLIP_COEFFICIENT) == [0]


def test_a_function_imported_before_the_watch(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        step(model, optimizer, lambda p: imported_before_the_watch(p, 2.0))
    run = Run.load(tmp_path / "run")
    assert values(run, GRAD_NORM, "weight") == [pytest.approx(6)]
    assert values(run, CLIP_NORM) == [pytest.approx(6)]


def test_clipping_in_its_place(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            step(model, optimizer, lambda p: nn.utils.clip_grad_norm_(p, 2.0))
    run = Run.load(tmp_path / "run")
    assert values(run, CLIP_LATE) == [0, 0, 0]
    assert values(run, CLIP_SCALED) == [0, 0, 0]


@pytest.mark.parametrize("clip", [nn.utils.clip_grad_norm_, nn.utils.clip_grad_value_])
def test_clipping_after_the_step(tmp_path, model, optimizer, clip):
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            step(model, optimizer)
            getattr(nn.utils, clip.__name__)(model.parameters(), 2.0)
    run = Run.load(tmp_path / "run")
    assert values(run, CLIP_LATE) == [1, 1, 1]
    assert values(run, GRAD_NORM, "weight") == pytest.approx([6, 6, 6])


def test_a_norm_asked_for_after_the_step_is_no_clipping(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            step(model, optimizer, lambda p: nn.utils.clip_grad_norm_(p, 2.0))
            nn.utils.clip_grad_norm_(model.parameters(), math.inf)
    run = Run.load(tmp_path / "run")
    assert values(run, CLIP_LATE) == [0, 0, 0]
    assert values(run, CLIP_LIMIT) == [2, 2, 2]


def test_clipping_of_one_optimizer_while_the_other_has_stepped(tmp_path, model):
    other = nn.Linear(1, 1, bias=False)
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.001) for each in (model, other)]
    with watching(tmp_path / "run", [model, other], optimizers):
        for _ in range(3):
            other(model(torch.ones(1, 4))).sum().backward()
            optimizers[0].step()
            nn.utils.clip_grad_norm_(other.parameters(), 2.0)
            optimizers[1].step()
    assert values(Run.load(tmp_path / "run"), CLIP_LATE) == [0, 0, 0]


@pytest.mark.parametrize("unscales", [True, False])
def test_clipping_of_scaled_gradients(tmp_path, model, optimizer, unscales):
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            optimizer.zero_grad()
            scaler.scale(3 * model(torch.ones(1, 4)).sum()).backward()
            if unscales:
                scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            scaler.step(optimizer)
            scaler.update()
    run = Run.load(tmp_path / "run")
    assert values(run, CLIP_SCALED) == [0 if unscales else 1] * 3
    assert values(run, CLIP_LATE) == [0, 0, 0]
    assert values(run, GRAD_NORM, "weight") == pytest.approx([6, 6, 6])


def counts(path, model, optimizer, make, *, every, steps=6, metric=()):
    with watching(path, model, optimizer):
        schedule = make(optimizer)
        for number in range(steps):
            step(model, optimizer)
            if number % every == every - 1:
                schedule.step(*metric)
    run = Run.load(path)
    return values(run, SCHEDULE_STEPS) if SCHEDULE_STEPS in run else []


@pytest.mark.parametrize(
    "make",
    [
        lambda o: lr_scheduler.StepLR(o, 3),
        lambda o: lr_scheduler.OneCycleLR(o, 0.1, 20),
        lambda o: lr_scheduler.LambdaLR(o, lambda e: 0.9**e),
        lambda o: lr_scheduler.SequentialLR(
            o, [lr_scheduler.ConstantLR(o), lr_scheduler.ExponentialLR(o, 0.9)], [2]
        ),
        lambda o: lr_scheduler.ChainedScheduler(
            [lr_scheduler.ConstantLR(o), lr_scheduler.ExponentialLR(o, 0.9)]
        ),
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 5),
    ],
    ids=["step", "one cycle", "lambda", "sequential", "chained", "restarts"],
)
def test_once_a_batch_is_one_each(tmp_path, model, optimizer, make):
    assert counts(tmp_path / "run", model, optimizer, make, every=1) == [1] * 6


def test_once_an_epoch(tmp_path, model, optimizer):
    read = counts(tmp_path / "run", model, optimizer, lambda o: lr_scheduler.StepLR(o, 1), every=3)
    assert sum(read) == 2
    assert read == [1, 0, 0, 1]


def test_on_plateau(tmp_path, model, optimizer):
    read = counts(
        tmp_path / "run", model, optimizer, lr_scheduler.ReduceLROnPlateau, every=2, metric=(1.0,)
    )
    assert sum(read) == 3


def test_no_scheduler_no_reading(tmp_path, model, optimizer):
    assert counts(tmp_path / "run", model, optimizer, lambda o: None, every=99) == []


def test_construction_in_the_midst_of_training_does_not_count(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        step(model, optimizer)
        step(model, optimizer)
        schedule = lr_scheduler.SequentialLR(
            optimizer,
            [lr_scheduler.ConstantLR(optimizer), lr_scheduler.ExponentialLR(optimizer, 0.9)],
            [2],
        )
        for _ in range(2):
            step(model, optimizer)
            schedule.step()
    assert values(Run.load(tmp_path / "run"), SCHEDULE_STEPS) == [1, 1]


def told(path):
    return [event.what for event in Run.load(path).events_of(SchedulerSeen)]


SCHEDULES = {
    "CosineAnnealingLR": (lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=7), {"horizon": 7}),
    "OneCycleLR": (lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=9), {"horizon": 9}),
    "StepLR": (
        lambda o: lr_scheduler.StepLR(o, 3, gamma=0.5),
        {"horizon": None, "step_size": 3, "gamma": 0.5},
    ),
    "MultiStepLR": (
        lambda o: lr_scheduler.MultiStepLR(o, [5, 8]),
        {"horizon": 8, "milestones": (5, 8), "gamma": 0.1},
    ),
    "LinearLR": (lambda o: lr_scheduler.LinearLR(o, total_iters=4), {"horizon": 4}),
    "ExponentialLR": (
        lambda o: lr_scheduler.ExponentialLR(o, 0.9),
        {"horizon": None, "gamma": 0.9},
    ),
    "CosineAnnealingWarmRestarts": (
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 6),
        {"horizon": 6},
    ),
    "SequentialLR": (
        lambda o: lr_scheduler.SequentialLR(
            o,
            [lr_scheduler.LinearLR(o), lr_scheduler.CosineAnnealingLR(o, 10)],
            milestones=[2],
        ),
        {"horizon": 12, "milestones": (2,)},
    ),
    "LambdaLR": (lambda o: lr_scheduler.LambdaLR(o, lambda _: 1.0), {"horizon": None}),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_what_is_known_of_a_scheduler_is_told_once(tmp_path, model, optimizer, name):
    make, facts = SCHEDULES[name]
    counts(tmp_path / "run", model, optimizer, make, every=1, steps=3)
    (seen,) = told(tmp_path / "run")
    assert seen == SchedulerSeen(name, position=seen.position, **facts)
    assert seen.position == 1  # it was stepped once when it was first seen


def test_clipping_that_begins_after_rows_were_taken(tmp_path, model, optimizer, monkeypatch):
    """Light steps before it, written in one bunch with the first clipped one."""
    monkeypatch.setattr(Budget, "depth", lambda *_: Depth.LIGHT)
    with watching(tmp_path / "run", model, optimizer):
        for number in range(8):
            optimizer.zero_grad()
            model(torch.ones(1, 4)).sum().backward()
            if number > 3:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
    run = Run.load(tmp_path / "run")
    assert run[CLIP_COEFFICIENT][""].steps.tolist() == [4, 5, 6, 7]
    assert not run.events_of(HolterFailed)


@pytest.mark.parametrize(("calls", "early"), [(1, True), (3, False)])
@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler")
def test_a_scheduler_before_the_optimizer(tmp_path, model, optimizer, calls, early):
    """Several calls bring a schedule forward to where a training resumes."""
    with watching(tmp_path / "run", model, optimizer):
        schedule = lr_scheduler.StepLR(optimizer, 3)
        for _ in range(calls):
            schedule.step()
        for _ in range(3):
            step(model, optimizer)
            schedule.step()
    (fact,) = told(tmp_path / "run")
    assert fact.early is early


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler")
def test_a_scheduler_that_is_told_its_position_is_not_early(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        schedule = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=3)
        for number in range(6):
            schedule.step(number / 2)
            step(model, optimizer)
    (fact,) = told(tmp_path / "run")
    assert fact.early is False


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler")
def test_a_scheduler_after_a_skipped_step_is_not_early(tmp_path, model, optimizer):
    scaler = torch.amp.GradScaler("cpu")
    with watching(tmp_path / "run", model, optimizer):
        schedule = lr_scheduler.StepLR(optimizer, 3)
        for factor in (math.inf, 1.0):
            optimizer.zero_grad()
            scaler.scale(model(torch.ones(1, 4)).sum() * factor).backward()
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
    (fact,) = told(tmp_path / "run")
    assert fact.early is False


def test_a_watch_that_begins_in_the_midst_finds_no_scheduler_early(tmp_path, model, optimizer):
    schedule = lr_scheduler.StepLR(optimizer, 3)
    step(model, optimizer)
    with watching(tmp_path / "run", model, optimizer):
        schedule.step()
        step(model, optimizer)
    (fact,) = told(tmp_path / "run")
    assert fact.early is False
