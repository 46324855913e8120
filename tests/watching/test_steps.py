"""Steps: every update counts once, whatever is read of it and whatever happens between two."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import holter
from holter.record.events import CaptureWritten, SkippedStep
from holter.record.signals import AMP_SCALE, AMP_SKIPPED, LOSS, VAL_LOSS
from holter.watching.budget import Budget
from holter.watching.collectors.moments import Depth
from holter.watching.steps import OpenStep, Stage

STEPS = 40
MIXED = (Depth.FULL, Depth.LIGHT, Depth.LIGHT, Depth.REGULAR, Depth.LIGHT)


@pytest.fixture(params=[*Depth, MIXED], ids=lambda given: getattr(given, "name", "MIXED"))
def depths(request, monkeypatch):
    """Read every step but the first to one depth, or to depths in turn."""
    chosen = request.param if isinstance(request.param, tuple) else (request.param,)
    monkeypatch.setattr(Budget, "depth", lambda _, step: chosen[step % len(chosen)])
    return chosen


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.05), torch.randn(16, 4)


def validate(model, x, *, context):
    model.eval()
    with context():
        loss = functional.mse_loss(model(x), x.sum(1, keepdim=True))
    model.train()
    return loss.item()


@pytest.mark.parametrize("context", [torch.no_grad, torch.enable_grad])
@pytest.mark.parametrize("every", [1, 4, 5, 7, None])
@pytest.mark.usefixtures("depths")
def test_every_step_counts_with_and_without_validation(tmp_path, every, context):
    model, optimizer, x = make()
    losses, validations = [], {}
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True) as watch:
        for step in range(STEPS):
            loss = functional.mse_loss(model(x), x.sum(1, keepdim=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if every is not None and (step + 1) % every == 0:
                validations[step] = validate(model, x, context=context)
    assert watch.steps == STEPS
    run = holter.Run.load(tmp_path / "run")
    assert run.meta.steps == STEPS
    series = run[LOSS][""]  # each loss has the number of the step it was computed in
    assert series.steps.tolist() == list(range(STEPS))
    np.testing.assert_allclose(series.values, losses, rtol=1e-5)
    if validations:
        series = run[VAL_LOSS]["mse_loss"]
        assert dict(zip(series.steps.tolist(), series.values.tolist(), strict=True)) == (
            pytest.approx(validations, rel=1e-5)
        )


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.usefixtures("depths")
def test_logging_neither_adds_nor_drops_a_step(tmp_path, where):
    model, optimizer, x = make()
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True) as watch:
        for _ in range(STEPS):
            loss = model(x).square().mean()
            if where == "before":
                watch.log(loss=loss)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if where == "after":
                watch.log(loss=loss)
    assert watch.steps == STEPS


@pytest.mark.usefixtures("depths")
def test_skipped_steps_count_and_no_other_is_called_skipped(tmp_path):
    model, optimizer, x = make()
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    bad = (9, 10, 23)
    losses = []
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True, black_box=False) as watch:
        for step in range(STEPS):
            loss = model(x).square().mean() * (float("inf") if step in bad else 1.0)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
    assert watch.steps == STEPS
    run = holter.Run.load(tmp_path / "run")
    skipped = [event.step for event in run.events_of(SkippedStep)]
    assert skipped == list(bad)
    series = run[LOSS][""]
    assert series.steps.tolist() == list(range(STEPS))
    np.testing.assert_allclose(series.values, losses, rtol=1e-5)


@pytest.mark.usefixtures("depths")
def test_a_scaler_that_skips_for_good_hides_nothing(tmp_path):
    """A loss that is NaN from some step on: every step counts, is skipped, and has its loss."""
    model, optimizer, x = make()
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True) as watch:
        for step in range(STEPS):
            loss = model(x).square().mean() * (float("nan") if step >= 25 else 1.0)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    assert watch.steps == STEPS
    run = holter.Run.load(tmp_path / "run")
    assert [event.step for event in run.events_of(SkippedStep)] == list(range(25, STEPS))
    assert np.isnan(run[LOSS][""].values).tolist() == [step >= 25 for step in range(STEPS)]
    assert run[AMP_SKIPPED][""].values.tolist() == [step >= 25 for step in range(STEPS)]
    assert run[AMP_SCALE][""].values[-1] < 0.01
    assert [event.what.alarm for event in run.events_of(CaptureWritten)] == ["nonfinite"]


def test_stages_follow_the_table():
    step = OpenStep()
    assert step.is_ahead and not step.has_begun
    assert step.backward() and not step.backward()  # the second one accumulates
    assert step.stage is Stage.BACKWARD and not step.is_ahead
    step.next_depth = Depth.LIGHT
    step.updated(subject=None)  # type: ignore[arg-type]
    assert step.is_updated and step.has_begun and step.forward_depth is Depth.LIGHT
    step.end(1.0)
    assert (step.stage, step.depth) == (Stage.FRESH, Depth.LIGHT)
    assert not step.is_updated and not step.stepped
