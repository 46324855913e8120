import numpy as np
import pytest

from holter.diagnosis.rules.identical_rows import identical_rows
from holter.record import Run
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined, Verdict
from holter.record.signals import (
    GRAD_NORM,
    PARAMETER_FAN_IN,
    PARAMETER_OPTIMIZER,
    PARAMETER_TRAINABLE,
    WEIGHT_NORM,
    WEIGHT_ROW_COHERENCE,
    WEIGHT_TWIN_FRACTION,
)
from layered import STEPS, by_layer, falling, flat, layered, layers
from synthetic import found, said, series


def run(twins: list, more: dict | None = None) -> Run:
    readings = {
        WEIGHT_TWIN_FRACTION: by_layer(twins),
        GRAD_NORM: by_layer([1.0] * len(twins)),
        **(more or {}),
    }
    return layered(falling(), readings, layers(len(twins)))


def test_rows_that_stay_equal() -> None:
    (finding,) = found(identical_rows, run([1.0, 1.0, 0.0]))
    assert finding.confidence is Confidence.CERTAIN
    assert finding.onset == 0
    assert "0.weight, 1.weight" in finding.summary


def test_since_when() -> None:
    (finding,) = found(identical_rows, run([np.r_[np.zeros(50), np.ones(150)], 0.0]))
    assert finding.onset == 50


@pytest.mark.parametrize(
    "twins",
    [
        [0.0, 0.0],
        [0.54, 0.0],  # half of the units never fire
        [np.r_[np.ones(195), np.zeros(5)], 0.0],  # parted
        [0.0, 1.0],  # the last layer
        [np.nan, 0.0],
    ],
)
def test_silent(twins: list) -> None:
    (verdict,) = said(identical_rows, run(twins))
    assert isinstance(verdict, Clear)


def test_frozen_and_unreached_weights_do_not_count() -> None:
    frozen = {PARAMETER_OPTIMIZER: by_layer([0, 0, 0]), PARAMETER_TRAINABLE: by_layer([0, 1, 1])}
    assert not found(identical_rows, run([1.0, 0.0, 0.0], frozen))
    assert not found(identical_rows, run([1.0, 0.0], {GRAD_NORM: {"1.weight": 1.0}}))


def test_boundary() -> None:
    sampled = series([1.0] * 10, range(0, STEPS, 20))
    assert found(identical_rows, run([sampled, sampled]))
    short = series([1.0] * 9, range(0, STEPS - 20, 20))
    (verdict,) = said(identical_rows, run([short, short]))
    assert isinstance(verdict, NotExamined)
    assert found(identical_rows, run([short, short]), min_steps=5)


STARTS = np.r_[np.ones(1), np.zeros(STEPS - 1)]


@pytest.mark.parametrize(
    ("loss", "twins", "kind"),
    [
        (flat(), [STARTS, STARTS, 0.0], Finding),
        (falling(), [STARTS, STARTS, 0.0], Normal),  # dropout made the units differ
        (flat(), [STARTS, 0.0, 0.0], Clear),  # a branch that starts at zero on purpose
        (flat(), [STARTS, 0.0, STARTS], Clear),  # and a head that does
    ],
)
def test_rows_of_several_layers_that_start_identical(
    loss: np.ndarray, twins: list, kind: type[Verdict]
) -> None:
    readings = {WEIGHT_TWIN_FRACTION: by_layer(twins), GRAD_NORM: by_layer([1.0] * len(twins))}
    (verdict,) = said(identical_rows, layered(loss, readings, layers(len(twins))))
    assert isinstance(verdict, kind)
    if isinstance(verdict, Finding):
        assert verdict.confidence is Confidence.LIKELY
        assert "0.weight, 1.weight start identical" in verdict.summary


def fading(end: float, start: float = 1.0) -> np.ndarray:
    return np.linspace(start, end, STEPS)


def coherent(rows: list, *, size: float = 1.6, loss: np.ndarray | None = None) -> Run:
    """Layers of 32 inputs whose initial RMS x sqrt(fan-in) is `size`; no rows are equal."""
    readings = {
        WEIGHT_TWIN_FRACTION: by_layer([0.0] * len(rows)),
        WEIGHT_ROW_COHERENCE: by_layer(rows),
        GRAD_NORM: by_layer([1.0] * len(rows)),
        WEIGHT_NORM: by_layer([size * 32**0.5] * len(rows)),
        PARAMETER_FAN_IN: by_layer([32.0] * len(rows)),
    }
    return layered(falling() if loss is None else loss, readings, layers(len(rows)))


@pytest.mark.parametrize(
    ("loss", "rows", "confidence"),
    [
        (falling(), [fading(0.9), fading(0.7), 0.1], Confidence.LIKELY),
        (flat(), [fading(0.9), 0.1, 0.1], Confidence.LIKELY),
        (falling(), [fading(0.9), 0.1, 0.1], Confidence.HINT),
        (flat(), [fading(0.2), fading(0.3), 0.1], Confidence.LIKELY),  # parted, but too late
    ],
)
def test_rows_that_noise_parts_slightly(
    loss: np.ndarray, rows: list, confidence: Confidence
) -> None:
    (finding,) = found(identical_rows, coherent(rows, loss=loss))
    assert finding.confidence is confidence
    assert "0.weight" in finding.summary
    assert finding.evidence[0].signal is WEIGHT_ROW_COHERENCE


@pytest.mark.parametrize(
    ("rows", "size", "kind"),
    [
        ([0.03, 0.03, 0.3], 1.6, Clear),
        ([0.03, 0.03, 1.0], 1.6, Clear),  # the last layer
        ([0.97, 0.97, 0.3], 1.6, Clear),
        ([fading(0.9, start=0.5), fading(0.9, start=0.5), 0.3], 1.6, Clear),  # trained so
        ([0.995, 0.995, 0.3], 8.0, Clear),  # they share a large part, and differ as random rows do
        ([fading(0.2), fading(0.3), 0.1], 1.6, Normal),  # parted, and it learned
    ],
)
def test_silent_about_rows_that_differ(rows: list, size: float, kind: type[Verdict]) -> None:
    (verdict,) = said(identical_rows, coherent(rows, size=size))
    assert isinstance(verdict, kind)


def test_tables_of_one_constant_are_no_layers() -> None:
    readings = {
        WEIGHT_TWIN_FRACTION: by_layer([0.0] * 3),
        WEIGHT_ROW_COHERENCE: by_layer([1.0, 1.0, 0.1]),
        GRAD_NORM: by_layer([1.0] * 3),
    }
    assert not found(identical_rows, layered(flat(), readings, layers(3)))
