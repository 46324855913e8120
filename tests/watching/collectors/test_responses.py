"""How much the outputs of models vary between samples."""

import pytest
import torch
from torch import nn

from holter import Run
from holter.record.signals import (
    RESPONSE_INPUT_SPREAD,
    RESPONSE_INPUT_UNITS,
    RESPONSE_SIZE,
    RESPONSE_SPREAD,
    RESPONSE_UNITS,
)
from watching.collectors.trainings import watching


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 5), nn.Linear(3, 2)

    def forward(self, x):
        return self.first(x), {"also": self.second(x)}


def recorded(path, model, step):
    """Return the run of two steps, each of which returns its loss."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watching(path, model, optimizer):
        for _ in range(2):
            optimizer.zero_grad()
            step(model).backward()
            optimizer.step()
    return Run.load(path)


def test_every_tensor_that_a_model_returns(tmp_path):
    x = 2 + torch.randn(16, 3)

    def step(model):
        first, others = model(x)
        model(torch.zeros(16, 3))  # a second call is not read
        return first.sum() + others["also"].sum()

    model = Two()
    run = recorded(tmp_path / "run", model, step)
    assert set(run[RESPONSE_SPREAD]) == {"Two", "Two[1]"}
    for owner, layer in (("Two", model.first), ("Two[1]", model.second)):
        with torch.no_grad():
            output = layer(x)
        spread = output.var(0, correction=0).mean().sqrt().item()
        assert run[RESPONSE_SPREAD][owner].values.tolist() == pytest.approx([spread] * 2, rel=1e-4)
        size = output.square().mean().sqrt().item()
        assert run[RESPONSE_SIZE][owner].values[0] == pytest.approx(size, rel=1e-4)
        assert run[RESPONSE_UNITS][owner].values[0] == layer.out_features
        given = x.var(0, correction=0).mean().sqrt().item()
        assert run[RESPONSE_INPUT_SPREAD][owner].values[0] == pytest.approx(given, rel=1e-4)
        assert run[RESPONSE_INPUT_UNITS][owner].values[0] == 3


def test_parts_that_the_script_calls_by_themselves(tmp_path):
    def step(model):
        return model.first(torch.randn(8, 3)).sum() + model.second(torch.randn(8, 3)).sum()

    assert set(recorded(tmp_path / "run", Two(), step)[RESPONSE_SPREAD]) == {
        "Two.first",
        "Two.second",
    }


def test_few_samples_have_no_spread(tmp_path):
    run = recorded(tmp_path / "run", Two(), lambda model: model(torch.randn(3, 3))[0].sum())
    assert RESPONSE_SPREAD not in run
