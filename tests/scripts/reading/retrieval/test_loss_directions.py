"""Losses of both directions of a similarity."""

import pytest

from tests.scripts.reading.found import kinds


@pytest.mark.parametrize(
    "text",
    [
        "loss = (F.cross_entropy(z, y) + F.cross_entropy(z, y.t())) / 2",
        "y = torch.arange(n)\na = F.cross_entropy(z, y)\nb = F.cross_entropy(z, y)\nloss = a + b",
        "loss = 0.5 * (criterion(z, y) + criterion(z, y.T))",
    ],
)
def test_directions_that_are_taken_twice(text: str) -> None:
    assert kinds(text) == {"same direction"}


@pytest.mark.parametrize(
    "text",
    [
        "y = torch.arange(n)\nloss = (F.cross_entropy(z, y) + F.cross_entropy(z.t(), y)) / 2",
        "loss = F.cross_entropy(z, y) + F.cross_entropy(z, other)",
        "loss = F.cross_entropy(z, y) + F.cross_entropy(z, y, label_smoothing=0.1)",
    ],
)
def test_directions_that_differ(text: str) -> None:
    assert not kinds(text)
