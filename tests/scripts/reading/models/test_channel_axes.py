"""Readers of channel axes, and twins without a pattern."""

import pytest

from holter.scripts.reading import read

FOUND = {
    "reshaped axes": (
        "x = torch.from_numpy(img.reshape(3, *img.shape[:2]))",
        "h, w, c = img.shape\nx = img.reshape(c, h, w)",
        "H, W, C = x.shape\ny = x.reshape((C, H, W))",
    ),
}
HEALTHY = {
    "reshaped axes": (
        "x = img.transpose(2, 0, 1)",
        "c, h, w = img.shape\nx = img.reshape(c, h, w)",
        "x = raw.reshape(3, 32, 32)",
    ),
}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in FOUND.items() for text in texts]
)
def test_mistakes_are_found(kind: str, text: str) -> None:
    assert kind in {pattern.kind for pattern in read(text)}, text


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in HEALTHY.items() for text in texts]
)
def test_what_is_meant_so_is_not(kind: str, text: str) -> None:
    assert kind not in {pattern.kind for pattern in read(text)}, text
