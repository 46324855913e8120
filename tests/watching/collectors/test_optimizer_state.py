"""The age of an optimizer's state, and what Adam remembers."""

import math

import pytest
import torch
from torch import nn

from holter import Run
from holter.record.signals import ADAM_SURPRISE, ADAM_TINY_FRACTION, EPSILON, OPTIMIZER_AGE
from watching.collectors.trainings import values, watching


def loop(model, optimizer, gradients):
    for gradient in gradients:
        model.weight.grad = torch.full_like(model.weight, gradient)
        optimizer.step()


def record(path, optimizer_of, gradients, model=None):
    model = model or nn.Linear(4, 3, bias=False)
    optimizer = optimizer_of(model.parameters())
    with watching(path, model, optimizer):
        loop(model, optimizer, gradients)
    return Run.load(path)


OPTIMIZERS = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "amsgrad": lambda p: torch.optim.Adam(p, amsgrad=True),
    "single": lambda p: torch.optim.Adam(p, foreach=False),
    "fused": lambda p: torch.optim.Adam(p, fused=True),
    "nadam": torch.optim.NAdam,
    "radam": torch.optim.RAdam,
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_gradient_that_outgrows_what_adam_remembers(tmp_path, kind):
    run = record(tmp_path / "run", OPTIMIZERS[kind], [0.1, 0.1, 0.1, 2.0])
    assert values(run, ADAM_SURPRISE, "weight") == pytest.approx([1, 1, 20], rel=1e-4)
    assert values(run, ADAM_TINY_FRACTION, "weight") == [0, 0, 0]
    assert values(run, OPTIMIZER_AGE) == [1, 2, 3, 4]


def test_moments_under_epsilon(tmp_path):
    run = record(tmp_path / "run", lambda p: torch.optim.Adam(p, eps=1e-3), [1e-4, 1e-4, 1e-4])
    assert values(run, ADAM_TINY_FRACTION, "weight") == [1, 1]
    assert values(run, ADAM_SURPRISE, "weight") == pytest.approx([0.1, 0.1], rel=1e-4)
    assert values(run, EPSILON, "group 0") == pytest.approx([1e-3] * 3)


def test_a_large_parameter_is_read_in_part(tmp_path):
    model = nn.Linear(700, 300, bias=False)
    run = record(tmp_path / "run", torch.optim.Adam, [0.1, 0.1, 0.4], model)
    assert values(run, ADAM_SURPRISE, "weight") == pytest.approx([1, 4], rel=1e-4)


@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.RMSprop, torch.optim.Adafactor])
def test_others_have_no_such_moments(tmp_path, make):
    run = record(tmp_path / "run", lambda p: make(p, lr=0.1), [0.1] * 3)
    assert ADAM_SURPRISE not in run


def test_sgd_does_not_count(tmp_path):
    run = record(tmp_path / "run", lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), [0.1] * 3)
    assert OPTIMIZER_AGE not in run


def test_a_state_that_is_lost_and_one_that_is_kept(tmp_path):
    model = nn.Linear(4, 3, bias=False)
    first = torch.optim.Adam(model.parameters())
    with watching(tmp_path / "run", model, first) as watch:
        loop(model, first, [0.1] * 3)
        second = torch.optim.Adam(model.parameters())
        second.load_state_dict(first.state_dict())
        third = torch.optim.Adam(model.parameters())
        for each in (second, third):
            watch.add([], each)
            loop(model, each, [0.1] * 2)
    run = Run.load(tmp_path / "run")
    assert values(run, OPTIMIZER_AGE) == [1, 2, 3, 4, 5, 1, 2]


def test_a_gradient_that_is_not_finite_is_told(tmp_path):
    run = record(tmp_path / "run", torch.optim.Adam, [0.1, math.inf])
    assert values(run, ADAM_SURPRISE, "weight") == [math.inf]
