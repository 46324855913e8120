"""What batch norms and layer norms are given."""

import pytest
import torch
from torch import nn

from holter import Run
from holter.record.signals import NORMALISATION_INPUT_RMS, NORMALISATION_SAMPLES
from watching.collectors.trainings import values, watching


class LibraryRMSNorm(nn.Module):
    def forward(self, x):
        return x / x.square().mean(-1, keepdim=True).sqrt()


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.other, self.own = nn.LayerNorm(4), nn.RMSNorm(4), LibraryRMSNorm()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(self.own(self.other(self.norm(x))))


def record(path, model, *given, mode=True):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watching(path, model, optimizer):
        for x in given:
            model.train(mode)
            model(x).sum().backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                model(torch.cat([x, x]))
    return Run.load(path)


@pytest.mark.parametrize(
    ("model", "shape", "count"),
    [
        (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), (7, 3), 7),
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), (2, 3, 7, 7), 50),
    ],
    ids=["1d", "2d"],
)
def test_values_per_channel(tmp_path, model, shape, count):
    run = record(tmp_path / "run", model, torch.randn(shape), torch.randn(shape))
    assert values(run, NORMALISATION_SAMPLES, "1") == [count, count]
    assert NORMALISATION_INPUT_RMS not in run


def test_a_batch_norm_in_eval_mode_takes_no_statistics(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    run = record(tmp_path / "run", model, torch.randn(7, 3), mode=False)
    assert NORMALISATION_SAMPLES not in run


def test_the_size_of_what_layer_norms_are_given(tmp_path):
    given = torch.randn(5, 4) * 3, torch.randn(5, 4) * 30
    run = record(tmp_path / "run", Residual(), *given)
    wanted = [float(x.square().mean().sqrt()) for x in given]
    assert values(run, NORMALISATION_INPUT_RMS, "norm") == pytest.approx(wanted, rel=1e-5)
    assert set(run[NORMALISATION_INPUT_RMS]) == {"norm", "other", "own"}
