"""Readers of angles, and twins without a pattern."""

import pytest

from holter.scripts.reading import read

FOUND = {
    "degrees as radians": (
        "direction = (230 + 70 * turn) % 360\nx = np.stack([np.sin(direction), np.cos(direction)])",
        "df['s'] = np.sin(df['wind_direction'])",
        "angle = rng.uniform(-15, 15)\nc, s = np.cos(angle), np.sin(angle)",
        "MAX_ANGLE = 30\nangle = (torch.rand(1).item() * 2 - 1) * MAX_ANGLE\nc = math.cos(angle)",
        "def f(heading):\n    return torch.cos(heading % 360)\nf(d)",
        "x = torch.sin(batch.azimuth_deg)",
    ),
    "another period": (
        "x = np.sin(2 * np.pi * hour / 12)",
        "a = 2 * math.pi * df['month'] / 7\nx = np.stack([np.sin(a), np.cos(a)])",
        "x = torch.cos(weekday * 2 * torch.pi / 5)",
    ),
}
HEALTHY = {
    "degrees as radians": (
        "rad = np.deg2rad(direction % 360)\nx = np.sin(rad)",
        "x = np.sin(np.pi * wind_direction / 180)",
        "angle = rng.uniform(0, 2 * np.pi)\nx = np.cos(angle)",
        "angle = rng.uniform(-0.5, 1.1)\nx = np.cos(angle)",
        "heading = np.arctan2(vy, vx)\nx = np.cos(heading)",
        "def f(direction):\n    return np.sin(direction)\nf(np.radians(d))",
        "x = torch.sin(3 * x)",
        "pe = torch.sin(pos * div)",
    ),
    "another period": (
        "x = np.sin(2 * np.pi * hour / 24)",
        "x = np.stack([np.sin(2 * np.pi * hour / 24), np.sin(2 * np.pi * hour / 12)])",
        "x = np.sin(np.pi * hour / 12)",
        "x = np.cos(2 * np.pi * (month - 1) / 12)",
        "x = np.sin(2 * np.pi * doy / 365.25)",
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
