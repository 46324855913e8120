"""What a training takes from a checkpoint."""

import copy
import gc
import weakref

import pytest
import torch
from torch import nn

from holter import Run
from holter.record.events import SchedulerSeen, StateLoaded
from holter.record.signals import (
    CHECKPOINT_OPTIMIZER_STEPS,
    CHECKPOINT_RESTORED,
    CHECKPOINT_SAME_OPTIMIZER,
    CHECKPOINT_SCHEDULER_STEPS,
    CHECKPOINT_WEIGHTS,
)
from watching.collectors.trainings import watching

SIGNALS = (
    CHECKPOINT_WEIGHTS,
    CHECKPOINT_OPTIMIZER_STEPS,
    CHECKPOINT_SCHEDULER_STEPS,
    CHECKPOINT_SAME_OPTIMIZER,
    CHECKPOINT_RESTORED,
)


def parts(rate=0.01, kind=torch.optim.AdamW):
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    optimizer = kind(model.parameters(), lr=rate)
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2)


def train(model, optimizer, scheduler, steps=5):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4, 3)).square().mean().backward()
        optimizer.step()
        scheduler.step()


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint after five steps, as most scripts write it."""

    def write(kind=torch.optim.AdamW):
        before = parts(kind=kind)
        train(*before)
        names = ("model", "optimizer", "scheduler")
        states = {name: part.state_dict() for name, part in zip(names, before, strict=True)}
        torch.save({**states, "epoch": 5}, tmp_path / "last.pt")
        return tmp_path / "last.pt"

    return write


def resumed(path, load, **options):
    """All readings of a training that is resumed by `load`, None where one is absent."""
    model, optimizer, scheduler = parts(**options)
    with watching(path, model, optimizer):
        load(model, optimizer, scheduler)
        train(model, optimizer, scheduler)
    run = Run.load(path)
    readings = [run[each][""].values.tolist() if each in run else None for each in SIGNALS]
    return readings, run.events_of(SchedulerSeen)[0].what.position


def test_weights_only(tmp_path, checkpoint):
    file = checkpoint()

    def load(model, *_):
        model.load_state_dict(torch.load(file)["model"])

    assert resumed(tmp_path / "run", load) == ([[1.0], [5.0], [5.0], [1.0], [0.0]], 1)


def test_everything(tmp_path, checkpoint):
    file = checkpoint()

    def load(model, optimizer, scheduler):
        states = torch.load(file)
        model.load_state_dict(states["model"])
        optimizer.load_state_dict(states["optimizer"])
        scheduler.load_state_dict(states["scheduler"])

    assert resumed(tmp_path / "run", load) == ([[1.0], [5.0], [5.0], [1.0], [1.0]], 6)


@pytest.mark.filterwarnings("ignore:Detected call of")
def test_a_schedule_that_is_brought_forward(tmp_path, checkpoint):
    file = checkpoint()

    def load(model, optimizer, scheduler):
        states = torch.load(file)
        model.load_state_dict(states["model"])
        optimizer.load_state_dict(states["optimizer"])
        for _ in range(states["epoch"]):
            scheduler.step()

    _, position = resumed(tmp_path / "run", load)
    assert position >= 5


def test_a_body_without_its_head_and_another_rate(tmp_path, checkpoint):
    file = checkpoint()

    def load(model, *_):
        body = {name: each for name, each in torch.load(file)["model"].items() if name[0] == "0"}
        model.load_state_dict(body, strict=False)

    readings, _ = resumed(tmp_path / "run", load, rate=0.003)
    assert readings == [[0.5], [5.0], [5.0], [0.0], [0.0]]


def test_an_optimizer_without_a_state_has_nothing_to_lose(tmp_path, checkpoint):
    file = checkpoint(torch.optim.SGD)

    def load(model, *_):
        model.load_state_dict(torch.load(file)["model"])

    readings, _ = resumed(tmp_path / "run", load, kind=torch.optim.SGD)
    assert readings[1] is None


def test_weights_alone_are_no_resume(tmp_path, checkpoint):
    file = checkpoint()
    torch.save(torch.load(file)["model"], file)

    def load(model, *_):
        model.load_state_dict(torch.load(file))

    assert resumed(tmp_path / "run", load)[0] == [None] * 5


@pytest.mark.parametrize("when", ["for another model", "while training"])
def test_what_is_loaded_elsewhere_or_later_is_no_resume(tmp_path, checkpoint, when):
    file = checkpoint()

    def load(model, optimizer, scheduler):
        if when == "while training":
            train(model, optimizer, scheduler, 1)
        target = copy.deepcopy(model) if when == "for another model" else model
        target.load_state_dict(torch.load(file)["model"])

    assert resumed(tmp_path / "run", load)[0] == [None] * 5


def test_a_checkpoint_is_not_kept(tmp_path, checkpoint):
    file = checkpoint()
    model, optimizer, scheduler = parts()
    with watching(tmp_path / "run", model, optimizer):
        states = torch.load(file)
        model.load_state_dict(states["model"])
        kept = weakref.ref(states["model"]["0.weight"])
        del states
        gc.collect()
        assert kept() is None
        train(model, optimizer, scheduler)


def test_the_names_that_fit_are_told_before_and_during_training(tmp_path):
    model, optimizer, scheduler = parts()
    state = {f"module.{name}": value for name, value in model.state_dict().items()}
    with watching(tmp_path / "run", model, optimizer):
        model.load_state_dict(state, strict=False)
        train(model, optimizer, scheduler)
        model.load_state_dict(model.state_dict())
        nn.Linear(3, 4).load_state_dict({}, strict=False)
    told = [event.what for event in Run.load(tmp_path / "run").events_of(StateLoaded)]
    assert [(load.found, load.missing, load.unexpected, load.renamed) for load in told] == [
        (0, 4, 4, 4),
        (4, 0, 0, 0),
        (0, 2, 0, 0),
    ]
    assert told[0].module == told[1].module != told[2].module
    assert told[0].example == ("0.weight", "module.0.weight")
    assert "test_resumption.py" in told[0].where


class Adapted(nn.Module):
    """A layer with an addition of low rank."""

    def __init__(self, base):
        super().__init__()
        self.base = base
        self.down, self.up = nn.Linear(3, 1), nn.Linear(1, 4)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


def test_names_of_layers_that_were_wrapped_before_loading(tmp_path):
    model = nn.ModuleDict({"first": nn.Linear(3, 4), "last": nn.Linear(4, 2)})
    state = model.state_dict()
    model["first"] = Adapted(model["first"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watching(tmp_path / "run", model, optimizer):
        model.load_state_dict(state, strict=False)
        model["last"](model["first"](torch.randn(2, 3))).sum().backward()
        optimizer.step()
    (told,) = [event.what for event in Run.load(tmp_path / "run").events_of(StateLoaded)]
    assert (told.found, told.missing, told.unexpected, told.renamed) == (2, 6, 2, 2)
    assert told.example == ("first.base.weight", "first.weight")


class Tied(nn.Module):
    """Has a weight of two names, and statistics of batches."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x):
        return self.norm(self.second(self.first(x)))


def own_names(path, load):
    """Count the names of a load after training: of the model's own memory, and all."""
    model = Tied()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watching(path, model, optimizer):
        kept = model.state_dict()
        train(model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2))
        load(model, kept)
    (told,) = [event.what for event in Run.load(path).events_of(StateLoaded)]
    return told.own, told.found


@pytest.mark.parametrize(
    ("load", "own"),
    [
        (lambda model, kept: model.load_state_dict(kept), 9),
        (lambda model, kept: model.load_state_dict(dict(kept)), 9),
        (lambda model, kept: model.load_state_dict(copy.deepcopy(kept)), 0),
        (lambda model, kept: model.load_state_dict({k: v.clone() for k, v in kept.items()}), 0),
        (lambda model, kept: model.load_state_dict({**kept, "first.bias": torch.zeros(3)}), 8),
        (lambda model, kept: model.load_state_dict(copy.deepcopy(model).state_dict()), 0),
        (lambda model, kept: model.load_state_dict(kept, assign=True), 0),
        (lambda model, kept: model.load_state_dict(kept, True, True), 0),
        (lambda model, kept: model.load_state_dict(model.state_dict()), 0),  # it may be edited
    ],
)
def test_names_of_the_models_own_memory_are_counted(tmp_path, load, own):
    assert own_names(tmp_path / "run", load) == (own, 9)


def test_own_memory_is_not_counted_before_training(tmp_path):
    model, optimizer, scheduler = parts()
    with watching(tmp_path / "run", model, optimizer):
        model.load_state_dict(model.state_dict())
        train(model, optimizer, scheduler)
    (told,) = [event.what for event in Run.load(tmp_path / "run").events_of(StateLoaded)]
    assert (told.own, told.found) == (0, 4)
