"""Pictures are PNG files, of whatever a run holds; without matplotlib one sentence says so."""

import sys
from pathlib import Path

import numpy as np
import pytest

from holter.record import Run
from holter.record.errors import HolterError
from holter.record.signals import (
    SHARPNESS_DISTANCE,
    SHARPNESS_LOSS,
    SHARPNESS_PLANE,
    SHARPNESS_START,
)
from holter.reports.plots import schedule, sharpness
from synthetic import run_of

LINE, SQUARE = np.linspace(-1, 1, 21), np.linspace(-1, 1, 5)


def run_with(lines: np.ndarray, plane: np.ndarray | None = None) -> Run:
    signals = {
        SHARPNESS_START: {"": [100.0]},
        SHARPNESS_DISTANCE: {"line": LINE, "plane": SQUARE},
        SHARPNESS_LOSS: {f"direction {n}": each for n, each in enumerate(lines)},
    }
    return run_of(signals if plane is None else signals | {SHARPNESS_PLANE: {"": plane.ravel()}})


def is_png(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG")


BOWL = np.add.outer(SQUARE**2, SQUARE**2) + 0.1


@pytest.mark.parametrize(
    ("lines", "plane"),
    [
        (np.stack([LINE**2 + 0.1, 2 * LINE**2 + 0.1]), None),
        (np.stack([LINE**2 + 0.1]), BOWL),
        (np.stack([np.exp(9 * LINE**2)]), np.exp(9 * BOWL)),
        (np.stack([-(LINE**2)]), -BOWL),
        (np.stack([np.where(LINE > 0.5, np.inf, 1.0)]), np.where(BOWL > 1, np.inf, BOWL)),
        (np.stack([np.full(21, np.nan)]), np.full((5, 5), np.nan)),
        (np.stack([np.ones(21)]), np.ones((5, 5))),
    ],
)
def test_the_loss_around_weights(
    lines: np.ndarray, plane: np.ndarray | None, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    sharpness.draw(run_with(lines, plane), tmp_path / "sharpness.png")
    assert is_png(tmp_path / "sharpness.png")


def test_a_run_without_directions(tmp_path: Path) -> None:
    with pytest.raises(HolterError, match="holter try sharpness"):
        sharpness.draw(run_of({}), tmp_path / "none.png")


def test_a_schedule(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    schedule.draw([0.1, 0.2, 0.1], tmp_path / "schedule.png")
    assert is_png(tmp_path / "schedule.png")


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(HolterError, match="need matplotlib"):
        schedule.draw([0.1], tmp_path / "schedule.png")
