"""Copies of a model that a script leaves."""

import copy

import pytest
import torch
from torch import nn

from holter.scripts.twins import compared, sketch_of


class Net(nn.Module):
    """A model of the script."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.layer = nn.Linear(3, width)


@pytest.mark.parametrize("decay", [0.5, 0.999])
def test_how_far_an_average_follows(decay: float) -> None:
    torch.manual_seed(0)
    model = Net()
    initial, average = sketch_of(model), copy.deepcopy(model)
    with torch.no_grad():
        for _ in range(20):
            for mean, value in zip(average.parameters(), model.parameters(), strict=True):
                value.add_(0.1)
                mean.mul_(decay).add_(value, alpha=1 - decay)
    (comparison,) = compared(model, initial, [average])
    assert comparison.model == "Net"
    assert comparison.written >= 20
    assert (comparison.behind > 0.9) is (decay > 0.9)
    assert comparison.behind + comparison.moved == pytest.approx(1, abs=1e-4)


def test_a_model_that_has_not_moved_is_not_compared() -> None:
    model = Net()
    assert not list(compared(model, sketch_of(model), [copy.deepcopy(model)]))
