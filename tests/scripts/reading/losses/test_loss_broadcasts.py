"""Outputs that are squeezed at other calls of the loss."""

import pytest

from tests.scripts.reading.found import kinds

COLUMN = """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
loss_fn = nn.SmoothL1Loss()
model.train()
{}
loss.backward()
valid = (model(xv).squeeze(-1) - yv).abs().mean()
"""


@pytest.mark.parametrize(
    "text",
    [
        "loss = loss_fn(model(x), y)",
        "pred = model(x)\nloss = loss_fn(pred, y)",
        "out = model(x)\nloss = F.mse_loss(out, y[rows])",
    ],
)
def test_outputs_that_are_squeezed_elsewhere(text: str) -> None:
    assert kinds(COLUMN.format(text)) == {"column beside row"}


@pytest.mark.parametrize(
    "text",
    [
        "loss = loss_fn(model(x).squeeze(1), y)",
        "pred = model(x)\nloss = loss_fn(pred[:, 0], y)",
        "loss = loss_fn(model(x), y.unsqueeze(1))",
        "loss = loss_fn(model(x), y[:, None])",
    ],
)
def test_outputs_that_are_squeezed(text: str) -> None:
    assert not kinds(COLUMN.format(text))
