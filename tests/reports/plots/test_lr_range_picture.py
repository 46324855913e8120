"""The picture of a range test, of whatever a run holds."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from holter.diagnosis.facts.rate_range import RateTrial
from holter.record import Run
from holter.record.errors import HolterError
from holter.reports.plots import lr_range
from sweeps import ENDS, START, range_test, run_with
from synthetic import run_of


@pytest.mark.parametrize(
    "run",
    [
        run_with(1e-3),
        run_with(1e-3, tried=False),
        run_with(0.2, ends=ENDS | {0.2: np.inf}),
        run_with(1e-3, edge=100.0),
        run_with(1e-3, ends=dict.fromkeys(ENDS, 9.0)),
        run_with(1e-3, ends=dict.fromkeys(ENDS, np.inf)),
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


@pytest.mark.parametrize("low", [1e-7, 1e-3, 0.5])
@pytest.mark.parametrize("decades", [0.3, 1.2, 2, 4, 9])
def test_labels_of_the_rates_do_not_overlap(low: float, decades: float) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rates = [low * 10 ** (decades * n / 3) for n in range(4)]
    trials = tuple(RateTrial(f"{rate}", rate, START - 0.1 * n) for n, rate in enumerate(rates))
    test = range_test(trials=trials, configured={"peak": low})
    drawn = Figure(figsize=(5.5, 4), layout="constrained")
    canvas = FigureCanvasAgg(drawn)
    axes = drawn.subplots()
    lr_range._trials(test, axes)
    canvas.draw()
    boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
    assert len(boxes) >= 2
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
