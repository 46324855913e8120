"""A run that stores no samples."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import holter


def broken_training(folder, **options):
    """Train until a batch makes the loss NaN."""
    x = torch.randn(64, 3)
    x[40] = float("nan")
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with holter.watch(model, optimizer, folder, quiet=True, **options) as watch:
        for (batch,) in DataLoader(TensorDataset(x), 8):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(batch), torch.zeros(8, 1)).backward()
            optimizer.step()
        watch.capture()
    return holter.Run.load(folder)


@pytest.mark.parametrize("on_nonfinite", ["record", "skip"])
def test_no_capture_is_written(tmp_path, on_nonfinite):
    broken_training(tmp_path / "with")
    assert list((tmp_path / "with" / "captures").iterdir())
    run = broken_training(tmp_path / "without", samples=False, on_nonfinite=on_nonfinite)
    assert not (tmp_path / "without" / "captures").exists()
    assert any("No samples are stored" in note for note in run.meta.notes)
