"""What is told of sharpness, clipping thresholds and batch sizes: numbers, in the width given."""

import numpy as np
import pytest

from holter.record import Run
from holter.record.signals import (
    BATCH_LARGEST,
    BATCH_NOISE_SCALE,
    BATCH_SIZE,
    CLIP_THRESHOLD_LIMIT,
    CLIP_THRESHOLD_LOSS,
    CLIP_THRESHOLD_NORM,
    SHARPNESS_BOUND,
    SHARPNESS_DESCENT,
    SHARPNESS_DISTANCE,
    SHARPNESS_EIGENVALUE,
    SHARPNESS_LOSS,
    SHARPNESS_RATE,
    SHARPNESS_RESIDUAL,
    SHARPNESS_START,
)
from holter.reports._chart import chart
from holter.reports._lines import painted
from holter.reports.experiments import batch_size, clip_threshold, sharpness
from synthetic import run_of, series

LINE = np.linspace(-1, 1, 21)


def shown(module: object, run: Run, width: int = 96) -> str:
    text = painted(module.lines(run, width), color=False)
    assert max(map(len, text.splitlines()), default=0) <= width
    return text


@pytest.mark.parametrize("module", [sharpness, clip_threshold, batch_size])
def test_nothing_is_told_of_other_runs(module: object) -> None:
    assert shown(module, run_of({})) == ""


@pytest.mark.parametrize("width", [60, 96])
def test_sharpness(width: int) -> None:
    text = shown(
        sharpness,
        run_of(
            {
                SHARPNESS_START: {"": [100.0]},
                SHARPNESS_EIGENVALUE: {"hessian": [4.0], "preconditioned": [190.0]},
                SHARPNESS_RESIDUAL: {"hessian": [1e-4], "preconditioned": [2e-2]},
                SHARPNESS_BOUND: {"preconditioned": [380.0]},
                SHARPNESS_RATE: {"": [0.1]},
                SHARPNESS_DESCENT: {"as set": [1.0, 0.9, 0.4]},
                SHARPNESS_DISTANCE: {"line": LINE},
                SHARPNESS_LOSS: {"direction 0": 1 + LINE**2, "direction 1": 1 + 3 * LINE**2},
            }
        ),
        width,
    )
    words = " ".join(text.split())
    assert "0.5 of the 380 that steps bear at a learning rate of 0.1" in words
    assert "1 at the weights" in words
    assert "1.5 at 0.5 (+50%)" in words


def test_sharpness_without_second_derivatives() -> None:
    signals = {
        SHARPNESS_START: {"": [0.0]},
        SHARPNESS_DISTANCE: {"line": LINE},
        SHARPNESS_LOSS: {"direction 0": np.full(21, np.nan)},
    }
    assert "after 0 training steps" in shown(sharpness, run_of(signals))


def test_clip_threshold() -> None:
    norms = np.append(np.linspace(1, 2, 100), np.inf)
    signals = {CLIP_THRESHOLD_NORM: {"": norms}, CLIP_THRESHOLD_LOSS: {"as set": [1.0]}}
    text = shown(clip_threshold, run_of(signals))
    assert "95th percentile 1.95" in text
    assert "1 more are not finite" in text
    assert "nothing is clipped now" in text
    text = shown(clip_threshold, run_of(signals | {CLIP_THRESHOLD_LIMIT: {"": [1.5]}}))
    assert "the present one of 1.5 cuts 50%" in text


def test_batch_size() -> None:
    scale = {
        "estimate": series([50, 300], [0, 100]),
        "lower": series([30, 200], [0, 100]),
        "upper": series([90, 450], [0, 100]),
    }
    signals = {
        BATCH_SIZE: {"": [100.0]},
        BATCH_NOISE_SCALE: scale,
        BATCH_LARGEST: {"tried": [800.0]},
    }
    text = shown(batch_size, run_of(signals))
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line.split()}
    assert rows["100"][-1] == "now"
    assert rows["200"] == ["200", "0.62", "1.25", "1.60", "1.26"]  # (1 + 300/200) / (1 + 300/100)
    assert "800: steps with twice as many ran out of memory" in text


def test_a_batch_size_that_cannot_be_advised() -> None:
    scale = {"estimate": [900.0], "lower": [20.0], "upper": [np.inf]}
    text = shown(batch_size, run_of({BATCH_SIZE: {"": [64.0]}, BATCH_NOISE_SCALE: scale}))
    assert "over 20" in text
    assert "too uncertain" in text


def test_charts_go_up_where_values_do() -> None:
    rows = [line[1][0] for line in chart([0, 1], [0, 1], width=30, height=4)[:-1]]
    assert [row.strip(" ") != "" for row in rows] == [True] * 4
    assert rows[0].index(rows[0].strip()[0]) > rows[-1].index(rows[-1].strip()[0])
    assert chart([0, 1], [1, np.nan], width=30) == []
    assert len(chart([0, 1], [1, 1], width=30, height=4)) == 5
