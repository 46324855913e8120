import numpy as np
import pytest

from holter.diagnosis.rules.oversized_weights import oversized_weights
from holter.record import Run
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined, Verdict
from holter.record.signals import (
    ATTENTION_LOGIT_ABSMAX,
    PARAMETER_FAN_IN,
    PARAMETER_OPTIMIZER,
    PARAMETER_TRAINABLE,
    TARGET_ENTROPY,
    UPDATE_RATIO,
    WEIGHT_NORM,
)
from layered import by_layer, falling, flat, layered, layers
from synthetic import found, said


def run(sizes: list, loss: np.ndarray, more: dict | None = None) -> Run:
    """Layers of 32 x 32 weights whose RMS times sqrt(fan-in) is `sizes`."""
    readings = {
        WEIGHT_NORM: by_layer([size * 32**0.5 for size in sizes]),
        PARAMETER_FAN_IN: by_layer([32.0] * len(sizes)),
        TARGET_ENTROPY: {"cross_entropy": 2.3},
        **(more or {}),
    }
    return layered(loss, readings, layers(len(sizes)))


def slow(start: float, end: float) -> np.ndarray:
    return falling(start=start, end=end)


@pytest.mark.parametrize(
    ("loss", "confidence"),
    [
        (flat(), Confidence.LIKELY),
        (slow(9.0, 2.5), Confidence.LIKELY),  # far off, and no better than a constant
        (slow(9.0, 1.5), Confidence.HINT),
        (slow(2.5, 2.1), Confidence.HINT),
        (slow(9.0, 0.3), Confidence.HINT),  # it learned, and had to undo its start
    ],
)
def test_large_weights_with_damage(loss: np.ndarray, confidence: Confidence) -> None:
    (finding,) = found(oversized_weights, run([8.0, 8.0, 5.0], loss))
    assert finding.confidence is confidence
    assert finding.onset == 0
    assert "median RMS of 8 / sqrt(fan-in)" in finding.summary
    assert "3 of 3 matrices are above 4" in finding.evidence[0].says


def test_saturated_attention() -> None:
    logits = {ATTENTION_LOGIT_ABSMAX: {"0": 90.0}}
    assert not found(oversized_weights, run([8.0] * 3, slow(2.4, 1.6)))
    (finding,) = found(oversized_weights, run([8.0] * 3, slow(2.4, 1.6), logits))
    assert finding.confidence is Confidence.HINT
    assert "attention logits are up to 90" in finding.summary


@pytest.mark.parametrize(
    ("sizes", "loss", "kind"),
    [
        ([0.58, 1.41, 0.58], flat(), Clear),
        ([3.9, 3.9, 3.9], flat(), Clear),
        ([8.0, 1.0, 1.0], flat(), Clear),  # one large layer
        ([8.0, 8.0, 1.0], flat(), Finding),
        ([8.0, 8.0, 8.0], falling(), Normal),  # learned nevertheless
        ([8.0], flat(), NotExamined),
    ],
)
def test_by_the_median(sizes: list, loss: np.ndarray, kind: type[Verdict]) -> None:
    (verdict,) = said(oversized_weights, run(sizes, loss))
    assert isinstance(verdict, kind)


@pytest.mark.parametrize(
    "more",
    [
        # Codebooks and scaled layers have no fan-in that counts.
        {PARAMETER_FAN_IN: {"0.weight": 32.0}},
        {  # random features
            PARAMETER_OPTIMIZER: by_layer([-1, -1, 0]),
            PARAMETER_TRAINABLE: by_layer([0, 0, 1]),
        },
        {UPDATE_RATIO: by_layer([5.0] * 3)},  # the first update made them what they are
        {PARAMETER_FAN_IN: by_layer([2.0] * 3)},
    ],
)
def test_what_does_not_count(more: dict) -> None:
    (verdict,) = said(oversized_weights, run([8.0] * 3, flat(), more))
    assert isinstance(verdict, NotExamined)
