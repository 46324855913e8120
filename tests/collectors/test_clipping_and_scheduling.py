"""What clipping measured, and how often schedulers were stepped."""

import math

import pytest
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_ as imported_before_the_watch
from torch.optim import lr_scheduler

from collectors.trainings import values, watching
from holter import Run
from holter.signals import CLIP_COEFFICIENT, CLIP_LIMIT, CLIP_NORM, GRAD_NORM, SCHEDULE_STEPS


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
