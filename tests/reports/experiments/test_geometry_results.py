"""What is shown of sharpness, clipping thresholds and batch sizes."""

import numpy as np
import pytest
from tabled import shown, table

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
from holter.reports.experiments import Chart
from synthetic import run_of, series

LINE = np.linspace(-1, 1, 21)


@pytest.mark.parametrize("width", [60, 96])
def test_sharpness(width: int) -> None:
    text = shown(
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
    assert "50% of the stability bound at a learning rate of 0.1" in words
    assert "0.5 1.5 50" in words


def test_sharpness_without_second_derivatives() -> None:
    signals = {
        SHARPNESS_START: {"": [0.0]},
        SHARPNESS_DISTANCE: {"line": LINE},
        SHARPNESS_LOSS: {"direction 0": np.full(21, np.nan)},
    }
    assert "after 0 training steps" in shown(run_of(signals))


def test_clip_threshold() -> None:
    norms = np.append(np.linspace(1, 2, 100), np.inf)
    signals = {CLIP_THRESHOLD_NORM: {"": norms}, CLIP_THRESHOLD_LOSS: {"as set": [1.0]}}
    (row,) = table(run_of(signals), "gradient norms").rows
    assert row[:2] == ("all", 100)
    assert row[3] == pytest.approx(1.95)
    assert row[5:] == (1, None, None)
    assert "nothing is clipped now" in shown(run_of(signals))
    clipped = run_of(signals | {CLIP_THRESHOLD_LIMIT: {"": [1.5]}})
    assert table(clipped, "gradient norms").rows[0][6:] == (1.5, 50)
    assert "nothing is clipped now" not in shown(clipped)


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
    text = shown(run_of(signals))
    rows = {row[0]: row[1:] for row in table(run_of(signals), "other batch sizes").rows}
    assert rows[200] == pytest.approx((0.625, 1.25, 1.6, 1.6**0.5))  # (1 + 300/200) / (1 + 300/100)
    assert "the batch size is 100 now" in text
    assert "800; twice as many samples ran out of memory" in text


def test_a_batch_size_that_cannot_be_advised() -> None:
    scale = {"estimate": [900.0], "lower": [20.0], "upper": [np.inf]}
    text = shown(run_of({BATCH_SIZE: {"": [64.0]}, BATCH_NOISE_SCALE: scale}))
    assert "900     20  infinity" in text
    assert "too uncertain" in text


def test_charts_go_up_where_values_do() -> None:
    rows = [line[1][0] for line in chart(Chart((0, 1), (0, 1)), width=30, height=4)[:-1]]
    assert [row.strip(" ") != "" for row in rows] == [True] * 4
    assert rows[0].index(rows[0].strip()[0]) > rows[-1].index(rows[-1].strip()[0])
    assert chart(Chart((0, 1), (1, np.nan)), width=30) == []
    assert len(chart(Chart((0, 1), (1, 1)), width=30, height=4)) == 5
