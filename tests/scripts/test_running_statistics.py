"""Running statistics that a training leaves, beside those of one of its batches."""

import pytest
import torch
from torch import nn

from holter.record.events import StatisticsCompared
from holter.scripts.running_statistics import measured


def trained(momentum: float | None, updates: int) -> StatisticsCompared:
    """Compare a batch norm that has seen so many batches of mean 3 and deviation 5."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.BatchNorm1d(8, momentum=momentum), nn.Linear(8, 1))
    for _ in range(updates):
        model(5 * torch.randn(64, 8) + 3)
    (found,) = measured(model, ((5 * torch.randn(64, 8) + 3,), {}))
    return found


@pytest.mark.parametrize(
    ("momentum", "updates", "left"),
    [(0.001, 200, 0.82), (0.1, 200, 0.0), (None, 5, 0.0), (0.0, 50, 1.0)],
)
def test_share_of_the_initial_values(momentum: float | None, updates: int, left: float) -> None:
    assert trained(momentum, updates).left == pytest.approx(left, abs=0.01)


def test_an_error_by_the_initial_values_is_explained_by_them() -> None:
    found = trained(0.001, 200)
    assert found.variance > 3
    assert found.unexplained < 0.2


def test_statistics_of_other_data_are_not_explained() -> None:
    model = nn.BatchNorm1d(8, momentum=0.001)
    assert model.running_var is not None
    model.running_var.fill_(100.0)  # of a pretrained model
    (found,) = measured(model, ((torch.randn(64, 8),), {}))
    assert found.variance > 50
    assert found.unexplained > 0.9


def test_a_small_momentum_arrives_in_a_long_run() -> None:
    model = nn.BatchNorm1d(8, momentum=0.001)
    assert model.num_batches_tracked is not None
    model.num_batches_tracked.fill_(20_000)
    (found,) = measured(model, ((torch.randn(64, 8),), {}))
    assert found.left < 1e-6


def test_a_frozen_batch_norm_is_not_compared() -> None:
    model = nn.BatchNorm1d(8, momentum=0.001).eval()
    assert not [*measured(model, ((torch.randn(64, 8),), {}))]
