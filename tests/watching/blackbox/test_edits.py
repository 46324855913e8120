"""What the black box keeps of weights that a script writes to between steps."""

from pathlib import Path

import pytest
import torch
from torch import nn

import holter
from holter.record.events import WeightsEdited
from holter.watching.blackbox.capture import Capture, captures_in, load_capture
from holter.watching.blackbox.edits import Edits


def parts() -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def captured(path: Path, edit, *, steps: int = 20) -> Capture:
    model, optimizer = parts()
    with holter.watch(model, optimizer, path, quiet=True, budget=None) as watch:
        for step in range(steps):
            optimizer.zero_grad()
            model(torch.randn(8, 4)).pow(2).mean().backward()
            optimizer.step()
            edit(model, step)
        watch.capture()
    (folder,) = captures_in(path)
    return load_capture(folder)


def add(model, step):
    with torch.no_grad():
        model[0].weight.add_(0.1)


def clamp(model, step):
    model[0].weight.data.clamp_(-0.05, 0.05)


def replace(model, step):
    model[0].weight.data = model[0].weight.data.clone() + 0.1


def load_once(model, step):
    if step == 11:
        model.load_state_dict(parts()[0].state_dict())


@pytest.mark.parametrize("edit", [add, clamp, replace])
def test_every_edit_is_kept_with_its_values(tmp_path, edit):
    capture = captured(tmp_path / "run", edit)
    later = [step for step in capture.steps if step.step > 2 and step.stepped]
    assert later
    for step in later:
        assert set(step.edits) == {"model/Sequential/0.weight"}
        assert step.edits["model/Sequential/0.weight"] is not None
    (event,) = holter.Run.load(tmp_path / "run").events_of(WeightsEdited)
    assert event.what.parameters == ("0.weight",)
    assert event.what.of <= 2
    assert "test_edits.py:" in event.what.where


def test_a_single_edit_is_kept_at_its_step(tmp_path):
    capture = captured(tmp_path / "run", load_once)
    edited = {step.step: len(step.edits) for step in capture.steps if step.edits}
    assert edited == {12: 4}


def test_a_training_without_edits_has_none(tmp_path):
    capture = captured(tmp_path / "run", lambda model, step: None)
    assert not any(step.edits for step in capture.steps)
    assert not holter.Run.load(tmp_path / "run").events_of(WeightsEdited)


def test_embeddings_that_limit_their_norm_when_read_are_no_edits():
    embedding = nn.Embedding(10, 4, max_norm=0.1)
    edits = Edits({"": embedding}, {"": torch.optim.SGD(embedding.parameters(), lr=0.1)})
    edits.left()
    embedding(torch.arange(10))
    assert edits.found() == {}


def test_steps_name_their_optimizers_and_what_schedules_move(tmp_path):
    model, optimizer = parts()
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=40)
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True, budget=None) as watch:
        for place in range(20):
            optimizer.param_groups[0]["weight_decay"] = 0 if place < 15 else 0.1
            optimizer.zero_grad()
            model(torch.randn(8, 4)).pow(2).mean().backward()
            optimizer.step()
            schedule.step()
        watch.capture()
    (folder,) = captures_in(tmp_path / "run")
    steps = [step for step in load_capture(folder).steps if step.rates]
    assert all(step.stepped == steps[0].stepped and len(step.stepped) == 1 for step in steps)
    assert len({step.settings[0][0]["momentum"] for step in steps}) == len(steps)
    decays = [step.settings[0][0]["weight_decay"] for step in steps]
    assert decays == [0 if step.step < 15 else 0.1 for step in steps]


def test_an_error_in_looking_for_edits_never_reaches_the_training(tmp_path, monkeypatch):
    def broken(self):
        raise RuntimeError("no such tensor")

    monkeypatch.setattr(Edits, "found", broken)
    capture = captured(tmp_path / "run", add)
    assert not any(step.edits for step in capture.steps)
    assert any("no such tensor" in note for note in holter.Run.load(tmp_path / "run").meta.notes)
