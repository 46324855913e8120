"""The picture of a range test, of whatever a run holds."""

from pathlib import Path

import numpy as np
import pytest

from holter.record import Run
from holter.record.errors import HolterError
from holter.reports.plots import lr_range
from sweeps import ENDS, run_with
from synthetic import run_of


@pytest.mark.parametrize(
    "run",
    [
        run_with(1e-3),
        run_with(1e-3, tried=False),
        run_with(0.2, ends=ENDS | {0.2: np.inf}),
        run_with(1e-3, edge=100.0),
    ],
)
def test_is_a_png_file(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    lr_range.draw(run, tmp_path / "range.png")
    assert (tmp_path / "range.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("run", "sentence"),
    [(run_of({}), "holter try lr-range"), (run_with(1e-3, moved=0.0), "no weight changes")],
)
def test_nothing_to_draw(run: Run, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(HolterError, match=sentence):
        lr_range.draw(run, tmp_path / "none.png")
