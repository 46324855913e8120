"""Histograms of gradients and weights against numpy, through the file and back."""

import numpy as np
import torch
from torch import nn

from holter import Run
from holter.record.signals import GRAD_HISTOGRAM, WEIGHT_HISTOGRAM
from holter.record.signals.histograms import BINS, EXPONENTS, LOWEST, NONFINITE_BIN, ZERO_BIN
from holter.watching.collectors.histograms import EVERY, _divided
from watching.collectors.trainings import watching


def by_hand(tensor):
    values = np.abs(tensor.detach().double().numpy().ravel())
    row = np.zeros(BINS)
    finite = values[np.isfinite(values) & (values > 0)]
    exponents = np.clip(np.floor(np.log2(finite)) - LOWEST, 0, EXPONENTS - 1).astype(int)
    np.add.at(row, exponents, 1)
    row[ZERO_BIN] = (values == 0).sum()
    row[NONFINITE_BIN] = (~np.isfinite(values)).sum()
    return row / values.size


def test_as_numpy_counts_them(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2), nn.Linear(2, 2))
    idle = model[2].bias
    idle.requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    gradients, weights = [], []
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(EVERY + 1):
            optimizer.zero_grad()
            model(torch.randn(4, 6)).pow(2).sum().backward()
            gradients.append(
                [None if p.grad is None else by_hand(p.grad) for p in model.parameters()]
            )
            optimizer.step()
            weights.append([by_hand(p) for p in model.parameters()])
    run = Run.load(tmp_path / "run")
    for place, (name, parameter) in enumerate(model.named_parameters()):
        series = run[WEIGHT_HISTOGRAM][name]
        assert series.steps.tolist() == [0, EVERY]
        assert series.values.shape == (2, BINS)
        assert np.allclose(series.values, [weights[0][place], weights[EVERY][place]])
        recorded = run[GRAD_HISTOGRAM][name]
        if parameter is idle:
            assert not len(recorded)
        else:
            assert np.allclose(recorded.values, [gradients[0][place], gradients[EVERY][place]])
    rows = run[GRAD_HISTOGRAM].rows()
    assert rows.values.shape == (2, len(rows.owners), BINS)
    assert np.allclose(np.where(rows.present, rows.values, 0).sum(2), rows.present[:, :, 0])


def test_nan_and_infinity_have_a_bin(tmp_path):
    model = nn.Linear(4, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with watching(tmp_path / "run", model, optimizer):
        model(torch.tensor([[1.0, float("inf"), float("nan"), 0.0]])).sum().backward()
        optimizer.step()
    counted = Run.load(tmp_path / "run")[GRAD_HISTOGRAM]["weight"].values[0]
    assert counted[NONFINITE_BIN] == 0.5
    assert counted[ZERO_BIN] == 0.25
    assert counted[-LOWEST] == 0.25


def test_the_loss_scale_is_taken_out():
    from holter.watching.stats.summary import histogram

    tensor = torch.tensor([[1.0, 3.0, 0.0, 2.0**-30, float("inf")]])
    shares = histogram([tensor, tensor * 2.0**12]).float()
    assert torch.equal(_divided(shares, torch.tensor(2.0**12))[1], shares[0])
    assert torch.equal(_divided(shares, torch.tensor(1.0)), shares)
