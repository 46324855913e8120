"""Sinusoidal positions."""

import pytest

from tests.scripts.reading.found import kinds


@pytest.mark.parametrize(
    "text",
    [
        "f = torch.exp(-math.log(10000.0) * torch.arange(half, device=d) // half)",
        "f = 10000 ** (torch.arange(0, dim, 2).float() // dim)",
        "i = torch.arange(half)\nf = 1.0 / 10000 ** (i // half)",
    ],
)
def test_positions_that_are_rounded(text: str) -> None:
    assert kinds(text) == {"rounded frequencies"}


@pytest.mark.parametrize(
    "text",
    [
        "f = torch.exp(-math.log(10000.0) * torch.arange(half) / half)",
        "row = torch.arange(height * width) // width",
        "f = 10000 ** (2 * (torch.arange(dim) // 2) / dim)",
    ],
)
def test_positions_that_are_divided(text: str) -> None:
    assert not kinds(text)


@pytest.mark.parametrize(
    "text",
    [
        "pe[:, 0::2] = torch.sin(a)\npe[:, 0::2] = torch.cos(a)",
        "pe[0, :, 1::2] = np.sin(a)\npe[0, :, 1::2] = np.cos(a)",
        "self.pe[:, ::2] = a.sin()\nself.pe[:, ::2] = a.cos()",
    ],
)
def test_waves_that_overwrite_each_other(text: str) -> None:
    assert kinds(text) == {"overwritten half"}


@pytest.mark.parametrize(
    "text",
    [
        "pe[:, 0::2] = torch.sin(a)\npe[:, 1::2] = torch.cos(a)",
        "pe[:, 0::2] = torch.sin(a)\npe[:, 0::2] = torch.sin(b)",
        "x = torch.sin(a)\nx = torch.cos(a)",
    ],
)
def test_waves_beside_each_other(text: str) -> None:
    assert not kinds(text)
