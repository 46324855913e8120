"""Weights that somebody writes to between two steps."""

import copy

import pytest
import torch
from torch import nn

from holter import Run
from holter.record.signals import WEIGHT_REWRITTEN_FRACTION
from watching.collectors.trainings import values, watching


def rewritten(path, between, *, steps=6, anew=False):
    """The share by step, where `between` is called after every second step."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters())
    start = copy.deepcopy(model.state_dict())
    with watching(path, model, optimizer):
        for step in range(steps):
            optimizer.zero_grad()
            model(torch.randn(4, 3)).pow(2).sum().backward()
            optimizer.step()
            if step % 2:
                between(model, start)
                if anew:
                    optimizer = torch.optim.Adam(model.parameters())
    return values(Run.load(path), WEIGHT_REWRITTEN_FRACTION)


def nothing(model, start):
    with torch.no_grad():
        model(torch.randn(4, 3))
    model.eval()
    model.train()


def clamp(model, start):
    with torch.no_grad():
        for each in model.parameters():
            each.clamp_(-1, 1)


@pytest.mark.parametrize("write", [lambda model, start: model.load_state_dict(start), clamp])
def test_weights_that_are_loaded_or_changed(tmp_path, write):
    assert rewritten(tmp_path / "run", write) == [0, 1, 0, 1, 0]


def test_a_plain_loop(tmp_path):
    assert rewritten(tmp_path / "run", nothing) == [0] * 5
