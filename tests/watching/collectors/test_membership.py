"""Who is trainable, who is held by an optimizer, who is in the model, and when that changes."""

import torch
from torch import nn

from holter import Run
from holter.record.signals import (
    GRAD_NORM,
    PARAMETER_GIVEN,
    PARAMETER_IN_MODEL,
    PARAMETER_OPTIMIZER,
    PARAMETER_TRAINABLE,
)
from watching.collectors.trainings import watching


def facts(run, name):
    return tuple(
        int(run[signal][name].values[-1])
        for signal in (PARAMETER_TRAINABLE, PARAMETER_OPTIMIZER, PARAMETER_IN_MODEL)
    )


def step(model, optimizer, extra=0.0):
    optimizer.zero_grad()
    (model(torch.ones(2, 3)).sum() + extra).backward()
    optimizer.step()


def test_frozen_forgotten_and_foreign(tmp_path):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 1))
    model[0].requires_grad_(False)
    foreign = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([*model[2].parameters(), foreign], lr=0.1)
    with watching(tmp_path / "run", model, optimizer):
        step(model, optimizer, foreign.sum())
    run = Run.load(tmp_path / "run")
    assert facts(run, "0.weight") == (0, -1, 1)
    assert facts(run, "1.weight") == (1, -1, 1)
    assert facts(run, "2.weight") == (1, 0, 1)
    assert facts(run, "optimizer.param_groups[0][2]") == (1, 0, 0)
    # What nobody holds is still measured.
    assert len(run[GRAD_NORM]["1.weight"]) == 1


def test_facts_are_written_when_they_change_only(tmp_path):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    model[0].requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watching(tmp_path / "run", model, optimizer):
        for number in range(30):
            if number == 13:
                model[0].requires_grad_(True)
            step(model, optimizer)
    series = Run.load(tmp_path / "run")[PARAMETER_TRAINABLE]["0.weight"]
    assert series.steps.tolist() == [0, 13]
    assert series.values.tolist() == [0, 1]


def test_what_was_trainable_when_the_optimizer_got_it(tmp_path):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 1))
    model[0].requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watching(tmp_path / "run", model, optimizer):
        model[1].requires_grad_(False)
        step(model, optimizer)
    run = Run.load(tmp_path / "run")
    names = ("0.weight", "1.weight", "2.weight")
    assert [int(run[PARAMETER_GIVEN][name].values[-1]) for name in names] == [0, 1, 1]
    assert [int(run[PARAMETER_TRAINABLE][name].values[-1]) for name in names] == [0, 0, 1]


def test_a_group_added_later(tmp_path):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model[1].parameters(), lr=0.1)
    with watching(tmp_path / "run", model, optimizer):
        step(model, optimizer)
        step(model, optimizer)
        optimizer.add_param_group({"params": model[0].parameters(), "lr": 0.5})
        step(model, optimizer)
    run = Run.load(tmp_path / "run")
    series = run[PARAMETER_OPTIMIZER]["0.weight"]
    assert dict(zip(series.steps.tolist(), series.values.tolist(), strict=True)) == {0: -1, 2: 0}
    assert run[GRAD_NORM]["0.weight"].steps.tolist() == [0, 1, 2]


def test_a_layer_replaced_later(tmp_path):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watching(tmp_path / "run", model, optimizer):
        step(model, optimizer)
        model[1] = nn.Linear(3, 1)  # and the optimizer is not told
        step(model, optimizer)
    run = Run.load(tmp_path / "run")
    assert facts(run, "1.weight") == (1, -1, 1)
    stale = [name for name in run[PARAMETER_IN_MODEL] if "param_groups" in name]
    assert len(stale) == 2
    assert facts(run, stale[0]) == (1, 0, 0)


def test_two_optimizers_have_two_indices(tmp_path):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in model]
    with watching(tmp_path / "run", model, optimizers):
        model(torch.ones(1, 3)).sum().backward()
        for optimizer in optimizers:
            optimizer.step()
    run = Run.load(tmp_path / "run")
    assert facts(run, "0.bias") == (1, 0, 1)
    assert facts(run, "1.bias") == (1, 1, 1)


def test_parameters_in_a_plain_list_are_seen(tmp_path):
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(4, 4)
            self.blocks = [nn.Linear(4, 4), nn.Linear(4, 4)]
            self.again = {"first": self.first}  # registered elsewhere: not told twice
            self.scale = (nn.Parameter(torch.ones(())),)

        def forward(self, inputs):
            for block in (self.first, *self.blocks):
                inputs = block(inputs)
            return inputs * self.scale[0]

    model = Stack()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(2, 4)).sum().backward()
            optimizer.step()
    run = Run.load(tmp_path / "run")
    held = {name: series.values[-1] for name, series in run[PARAMETER_OPTIMIZER].items()}
    hidden = {
        "blocks[0].weight",
        "blocks[0].bias",
        "blocks[1].weight",
        "blocks[1].bias",
        "scale[0]",
    }
    assert {name for name, index in held.items() if index == -1} == hidden
    assert {name for name, index in held.items() if index == 0} == {"first.weight", "first.bias"}
    assert set(run[GRAD_NORM]) >= hidden
