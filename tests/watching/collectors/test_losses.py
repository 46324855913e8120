"""The loss of each step."""

import math

import pytest
import torch
from torch import nn

from holter import Run
from holter.record.events import SkippedStep
from holter.record.signals import (
    AMP_SCALE,
    AMP_SKIPPED,
    BACKWARD_CALLS,
    LOSS,
    LOSS_FACTOR,
    LOSS_LOGGED,
)
from holter.watching.collectors.script_factors import script_factors
from watching.collectors.trainings import values, watching


@pytest.fixture
def model():
    return nn.Linear(2, 1)


@pytest.fixture
def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.0)


def loss_of(model, value):
    """A loss of a known value, with a graph to the model."""
    return model(torch.ones(1, 2)).sum() * 0 + value


def test_one_backward_a_step(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        for value in (3.0, 2.0, math.nan, math.inf):
            loss_of(model, value).backward()
            optimizer.step()
    run = Run.load(tmp_path / "run")
    assert values(run, LOSS) == pytest.approx([3, 2, math.nan, math.inf], nan_ok=True)
    assert values(run, BACKWARD_CALLS) == [1] * 4
    assert LOSS_LOGGED not in run


@pytest.mark.parametrize("divisor", [1, 4])
def test_the_loss_of_micro_batches_is_their_mean(tmp_path, model, optimizer, divisor):
    with watching(tmp_path / "run", model, optimizer):
        for parts in ((1.0, 2.0, 6.0, 3.0), (2.0, 4.0), (5.0,)):
            for part in parts:
                (loss_of(model, part) / divisor).backward()
            optimizer.step()
    run = Run.load(tmp_path / "run")
    # A single call may be divided for another reason: it is recorded as it is.
    assert values(run, LOSS) == [3, 3, 5 / divisor]
    assert values(run, LOSS_FACTOR) == [divisor / 4, divisor / 2]
    assert values(run, BACKWARD_CALLS) == [4, 2, 1]


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_a_count_of_the_items_of_a_whole_step_makes_the_loss_a_sum(
    tmp_path, model, optimizer, dtype
):
    with watching(tmp_path / "run", model, optimizer):
        for total in (256, 200):
            count = torch.tensor(total, dtype=dtype)
            for part in (100.0, 300.0):
                (loss_of(model, part) / count * 1 / 1).backward()  # as by a library
            optimizer.step()
    run = Run.load(tmp_path / "run")
    assert values(run, LOSS) == [400 / 256, 400 / 200]
    assert LOSS_FACTOR not in run


def test_a_count_of_the_items_of_each_batch_makes_the_loss_a_mean(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        for parts in ((100.0, 300.0), (200.0, 500.0)):
            for part in parts:
                count = torch.tensor(100, dtype=torch.int32)
                (loss_of(model, part) / count).backward()
                del count
            optimizer.step()
    assert values(Run.load(tmp_path / "run"), LOSS) == [2, 3.5]


def test_an_accumulation_that_begins_at_a_light_step_is_averaged(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer, budget=1e-9):
        for step in range(60):
            for _ in range(1 if step < 50 else 3):
                loss_of(model, 2.0).backward()
            optimizer.step()
    run = Run.load(tmp_path / "run")
    assert values(run, LOSS) == [2] * 60


def test_different_losses_of_a_step_are_added(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            loss_of(model, 1.0).backward()
            loss_of(model, 2.0).backward()
            optimizer.step()
            for part in [loss_of(model, 1.0), loss_of(model, 2.0)]:  # computed together
                part.backward()
            optimizer.step()
    run = Run.load(tmp_path / "run")
    assert values(run, LOSS) == [3] * 6
    assert LOSS_FACTOR not in run


def test_a_loss_scale_by_hand_is_removed(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        for scale in (256.0, 256.0, 512.0):
            (loss_of(model, 3.0) * scale).backward()
            optimizer.step()
            (loss_of(model, 3.0) * 2).backward()  # a weight
            optimizer.step()
    assert values(Run.load(tmp_path / "run"), LOSS) == [3, 6] * 3


def test_a_loss_scale_that_a_later_stage_begins_with_is_removed(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        for scale in (1, 1, 16, 16):
            (loss_of(model, 3.0) * scale).backward()
            optimizer.step()
    assert values(Run.load(tmp_path / "run"), LOSS) == [3] * 4


def test_only_numbers_of_the_script_are_factors():
    loss = torch.ones(1, requires_grad=True).sum()
    found = [script_factors(each) for each in (loss, loss / 4, loss * 0.25, loss * 0.3)]
    assert found == [(1, 1), (1, 4), (1, 4), (1, 1)]
    assert script_factors(loss / 4 * 1024) == (1024, 4)
    assert script_factors(loss / torch.tensor(4.0)) == (1, 1)  # a count of targets, say


def test_a_loss_changed_in_place_afterwards(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        loss = loss_of(model, 3.0)
        loss.backward()
        loss.detach().mul_(100)
        optimizer.step()
    assert values(Run.load(tmp_path / "run"), LOSS) == [3]


def test_several_roots(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        torch.autograd.backward([loss_of(model, 1.0), loss_of(model, 2.0)])
        optimizer.step()
        torch.autograd.backward(tensors=loss_of(model, 5.0))
        optimizer.step()
    run = Run.load(tmp_path / "run")
    assert values(run, LOSS) == [3, 5]
    assert values(run, BACKWARD_CALLS) == [1, 1]


def test_roots_from_a_generator_still_get_their_backward(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        torch.autograd.backward(each for each in [loss_of(model, 1.0), loss_of(model, 2.0)])
        assert model.weight.grad is not None
        optimizer.step()
    assert values(Run.load(tmp_path / "run"), LOSS) == [3]


def test_a_gradient_edge_as_root(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        edge = torch.autograd.graph.get_gradient_edge(loss_of(model, 1.0))
        torch.autograd.backward(edge, torch.ones(()))
        assert model.weight.grad is not None
        optimizer.step()
    run = Run.load(tmp_path / "run")
    assert run.meta.notes == ()
    assert values(run, BACKWARD_CALLS) == [1]


def test_a_root_that_is_no_scalar_has_no_loss(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        out = model(torch.ones(3, 2))
        out.backward(torch.ones_like(out))
        optimizer.step()
    run = Run.load(tmp_path / "run")
    assert LOSS not in run
    assert values(run, BACKWARD_CALLS) == [1]


@pytest.mark.parametrize("when", ["before backward", "before step", "after step"])
def test_logged_on_either_side(tmp_path, model, optimizer, when):
    with watching(tmp_path / "run", model, optimizer) as watch:
        for value in (4.0, 5.0, 6.0):
            loss = loss_of(model, value)
            if when == "before backward" and value == 4.0:
                watch.log(loss=loss.item())
            loss.backward()
            if when == "before step":
                watch.log(loss=loss)
            optimizer.step()
            if when == "after step":
                watch.log(loss=torch.tensor([value, value]))
    run = Run.load(tmp_path / "run")
    assert values(run, LOSS) == [4, 5, 6]
    assert values(run, LOSS_LOGGED) == ([4] if when == "before backward" else [4, 5, 6])


def test_logged_alone_where_no_backward_is_seen(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer) as watch:
        for value in (1.0, 2.0):
            gradients = torch.autograd.grad(loss_of(model, value), list(model.parameters()))
            for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                parameter.grad = gradient
            optimizer.step()
            watch.log(loss=value)
    run = Run.load(tmp_path / "run")
    assert values(run, LOSS) == [1, 2]
    assert values(run, BACKWARD_CALLS) == [0, 0]


def test_the_amp_scale_is_removed_and_skips_are_seen(tmp_path, model, optimizer):
    scaler = torch.amp.GradScaler("cpu", init_scale=512.0, growth_interval=1000)
    with watching(tmp_path / "run", model, optimizer):
        for factor in (1.0, math.inf, 1.0):
            optimizer.zero_grad()
            loss = model(torch.ones(1, 2)).sum() * factor + (0 if factor == 1 else 1)
            value = loss.detach().clone()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    run = Run.load(tmp_path / "run")
    assert values(run, LOSS)[2] == pytest.approx(float(value))
    assert values(run, AMP_SCALE) == [512, 512, 256]
    assert values(run, AMP_SKIPPED) == [0, 1, 0]
    assert [event.step for event in run.events_of(SkippedStep)] == [1]


def test_each_optimizer_has_the_loss(tmp_path):
    model = nn.ModuleList([nn.Linear(2, 1), nn.Linear(2, 1)])
    optimizers = {"a": torch.optim.SGD(model[0].parameters(), lr=0.1),
                  "b": torch.optim.SGD(model[1].parameters(), lr=0.1)}  # fmt: skip
    with watching(tmp_path / "run", model, optimizers):
        (loss_of(model[0], 1.0) + loss_of(model[1], 1.0)).backward()
        optimizers["a"].step()
        optimizers["b"].step()
        loss_of(model[1], 7.0).backward()
        optimizers["b"].step()
    run = Run.load(tmp_path / "run")
    assert values(run, LOSS, "a") == [2]
    assert values(run, LOSS, "b") == [2, 7]
