import numpy as np
import pytest

from holter.diagnosis.rules.rounded_away_updates import rounded_away_updates
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import (
    AMP_SKIPPED,
    GRAD_NORM,
    GRAD_ZERO_FRACTION,
    UPDATE_RATIO,
    UPDATE_UNCHANGED_FRACTION,
)
from layered import STEPS, by_layer, falling, flat, layered, layers
from synthetic import found, said, series


def run(
    unchanged: list,
    more: dict | None = None,
    *,
    dtype: str = "bfloat16",
    loss: np.ndarray | None = None,
) -> Run:
    readings = {
        UPDATE_UNCHANGED_FRACTION: by_layer(unchanged),
        GRAD_NORM: by_layer([1.0] * len(unchanged)),
        **(more or {}),
    }
    return layered(flat() if loss is None else loss, readings, layers(len(unchanged), dtype=dtype))


@pytest.mark.parametrize(
    ("share", "confidence"), [(0.97, Confidence.CERTAIN), (0.7, Confidence.LIKELY)]
)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_most_elements_stay(share: float, confidence: Confidence, dtype: str) -> None:
    (finding,) = found(rounded_away_updates, run([share] * 3, dtype=dtype))
    assert finding.confidence is confidence
    assert dtype in finding.summary


@pytest.mark.parametrize("share", [0.97, 0.7])
def test_is_a_hint_where_the_loss_falls(share: float) -> None:
    made = run([share] * 3, loss=falling())
    (finding,) = found(rounded_away_updates, made)
    assert finding.confidence is Confidence.HINT
    (finding,) = found(rounded_away_updates, made, learned=0.99, certain=0.95)
    assert finding.confidence is (Confidence.CERTAIN if share > 0.95 else Confidence.LIKELY)


def test_names_what_is_left_of_the_update() -> None:
    (finding,) = found(
        rounded_away_updates, run([0.97, 0.99], {UPDATE_RATIO: by_layer([1e-4] * 2)})
    )
    assert finding.evidence[0].owner == "1.weight"
    assert UPDATE_RATIO in {each.signal for each in finding.evidence}


@pytest.mark.parametrize(
    ("unchanged", "more"),
    [
        ([0.3] * 3, {}),
        ([0.95, 0.1, 0.1], {}),  # one layer
        ([0.6, 0.65], {GRAD_ZERO_FRACTION: by_layer([0.4, 0.45])}),  # units without a gradient
    ],
)
def test_silent(unchanged: list, more: dict) -> None:
    (verdict,) = said(rounded_away_updates, run(unchanged, more))
    assert isinstance(verdict, Clear)


def test_sparse_gradients_do_not_count() -> None:
    sparse = {GRAD_ZERO_FRACTION: by_layer([0.95, 0.99])}  # embeddings
    (verdict,) = said(rounded_away_updates, run([0.97, 0.99], sparse))
    assert isinstance(verdict, NotExamined)


def test_float32_is_clear() -> None:
    (verdict,) = said(rounded_away_updates, run([0.97] * 3, dtype="float32"))
    assert isinstance(verdict, Clear)


def test_nothing_moved_nothing_reached_or_nothing_read() -> None:
    skipped = {AMP_SKIPPED: {"": np.ones(STEPS)}}
    for made in (
        run([1.0] * 3),
        run([0.97] * 3, {GRAD_NORM: by_layer([0.0] * 3)}),
        run([0.97] * 3, skipped),
        run([series([0.97] * 4)] * 3),
    ):
        (verdict,) = said(rounded_away_updates, made)
        assert isinstance(verdict, NotExamined)


def test_boundary_and_nan() -> None:
    unchanged = np.full(STEPS, 0.62)
    unchanged[3] = np.nan
    assert found(rounded_away_updates, run([unchanged]))
    assert not found(rounded_away_updates, run([unchanged]), lost=0.65)
