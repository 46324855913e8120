"""A run that is continued from an older checkpoint: the steps after it are taken again."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import holter
from holter.record import Run
from holter.record.events import Resumed, RolledBack
from holter.record.signals import GRAD_NORM, LOSS, OPTIMIZER_AGE

BATCHES = torch.Generator().manual_seed(0)
DATA = torch.randn(40, 8, 4, generator=BATCHES)


def training(kind: type[torch.optim.Optimizer] = torch.optim.Adam):
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    return model, kind(model.parameters(), lr=0.05)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, first: int, last: int) -> list[float]:
    losses = []
    for step in range(first, last):
        optimizer.zero_grad()
        loss = (model(DATA[step]) - 1).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def preempted(path: Path, kind: type[torch.optim.Optimizer] = torch.optim.Adam, **more: object):
    """Record 10 steps, of which a checkpoint holds 6; return the state and the first losses."""
    model, optimizer = training(kind)
    with holter.watch(model, optimizer, out=path, **more):
        losses = train(model, optimizer, 0, 6)
        file = io.BytesIO()
        torch.save((model.state_dict(), optimizer.state_dict()), file)
        train(model, optimizer, 30, 34)  # what is lost: other batches than the second time
    return file.getvalue(), losses


def loaded(saved: bytes, kind: type[torch.optim.Optimizer] = torch.optim.Adam):
    model, optimizer = training(kind)
    states = torch.load(io.BytesIO(saved), weights_only=False)
    model.load_state_dict(states[0])
    optimizer.load_state_dict(states[1])
    return model, optimizer


def resumed(path: Path, saved: bytes, kind: type[torch.optim.Optimizer] = torch.optim.Adam):
    model, optimizer = loaded(saved, kind)
    with holter.watch(model, optimizer, out=path, resume=True) as watch:
        losses = train(model, optimizer, 6, 9)
    return watch, losses


def test_the_steps_after_the_checkpoint_are_taken_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    saved, first = preempted(tmp_path / "run")
    assert Run.load(tmp_path / "run").steps == 10
    watch, second = resumed(tmp_path / "run", saved)
    assert watch.steps == 3
    run = Run.load(tmp_path / "run")
    assert run.steps == 9
    loss = run[LOSS][""]
    assert loss.steps.tolist() == list(range(9))
    np.testing.assert_array_equal(loss.values, np.float32([*first, *second]))
    for table in (run[GRAD_NORM], run[OPTIMIZER_AGE]):
        assert max(series.last for series in table.values()) == 8
    assert run[OPTIMIZER_AGE][""].values.tolist() == list(range(1, 10))
    (back,) = run.events_of(RolledBack)
    assert (back.step, back.what.steps) == (6, 10)
    assert [event.step for event in run.events_of(Resumed)] == [6]
    sentence = "checkpoint at step 6: the 4 steps recorded after it are discarded"
    assert sentence in capfd.readouterr().err
    assert any(sentence in note for note in run.meta.notes)


def test_the_step_is_found_between_two_readings_of_the_age(tmp_path: Path) -> None:
    saved, _ = preempted(tmp_path / "run", budget=1e-9)  # only few steps are read in depth
    resumed(tmp_path / "run", saved)
    assert Run.load(tmp_path / "run")[LOSS][""].steps.tolist() == list(range(9))


def test_two_rollbacks_in_one_run(tmp_path: Path) -> None:
    saved, _ = preempted(tmp_path / "run")
    resumed(tmp_path / "run", saved)
    _, last = resumed(tmp_path / "run", saved)
    run = Run.load(tmp_path / "run")
    assert run[LOSS][""].steps.tolist() == list(range(9))
    assert run[LOSS][""].values[6:].tolist() == np.float32(last).tolist()
    assert [(event.step, event.what.steps) for event in run.events_of(RolledBack)] == [(6, 9)]


def test_an_optimizer_that_does_not_count_goes_on_after_the_last_step(tmp_path: Path) -> None:
    saved, _ = preempted(tmp_path / "run", torch.optim.SGD)
    resumed(tmp_path / "run", saved, torch.optim.SGD)
    run = Run.load(tmp_path / "run")
    assert run[LOSS][""].steps.tolist() == list(range(13))
    assert not run.events_of(RolledBack)


def test_readers_see_a_whole_run_while_it_is_taken_up(tmp_path: Path) -> None:
    saved, _ = preempted(tmp_path / "run")
    before = Run.load(tmp_path / "run")
    model, optimizer = loaded(saved)
    with holter.watch(model, optimizer, out=tmp_path / "run", resume=True):
        train(model, optimizer, 6, 7)
        during = Run.load(tmp_path / "run")
        assert during[LOSS][""].steps.tolist()[:6] == list(range(6))
        assert during.steps <= 7
    assert len(before[LOSS][""]) == 10  # a reader that has opened it earlier keeps what it saw
    assert before.reload().steps == 7
