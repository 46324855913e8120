"""Columns of values beside rows of targets."""

import pytest

from tests.scripts.reading.found import kinds

VALUES = """
def update(q, target, s, a, r, s2, done):
    value = {}
    with torch.no_grad():
        wanted = {}
    return {}
"""
MAXIMUM = "r + 0.99 * (1 - done) * target(s2).max(1)[0]"


@pytest.mark.parametrize(
    ("value", "wanted", "loss"),
    [
        ("q(s).gather(1, a.unsqueeze(1))", MAXIMUM, "F.smooth_l1_loss(value, wanted)"),
        ("q(s).gather(1, a[:, None])", "r + target(s2).max(dim=1).values",
         "F.mse_loss(value, wanted.detach())"),
        ("torch.gather(q(s), 1, a.view(-1, 1))", "r + 0.9 * target(s2).amax(1)",
         "criterion(wanted, value)"),
    ],
)  # fmt: skip
def test_gathered_columns_beside_rows(value: str, wanted: str, loss: str) -> None:
    assert kinds(VALUES.format(value, wanted, loss)) == {"column beside row"}


@pytest.mark.parametrize(
    ("value", "wanted", "loss"),
    [
        ("q(s).gather(1, a.unsqueeze(1)).squeeze(1)", MAXIMUM, "F.mse_loss(value, wanted)"),
        ("q(s).gather(1, a.unsqueeze(1))", MAXIMUM, "F.mse_loss(value, wanted.unsqueeze(1))"),
        ("q(s).gather(1, a.unsqueeze(1))", "r + target(s2).max(1, keepdim=True)[0]",
         "F.mse_loss(value, wanted)"),
        ("q(s).gather(1, a.unsqueeze(1))", MAXIMUM, "F.mse_loss(value.squeeze(1), wanted)"),
    ],
)  # fmt: skip
def test_gathered_columns_that_are_squeezed(value: str, wanted: str, loss: str) -> None:
    assert not kinds(VALUES.format(value, wanted, loss))
