import numpy as np
import pytest

from holter.diagnosis.rules.frozen_weights import frozen_weights
from holter.record import Run
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined, Verdict
from holter.record.meta import Meta, ParameterSummary
from holter.record.signals import (
    LOSS,
    PARAMETER_IN_MODEL,
    PARAMETER_OPTIMIZER,
    PARAMETER_TRAINABLE,
)
from synthetic import run_of, said

SHAPES = {"fc1.weight": (8, 4), "fc1.bias": (8,), "fc2.weight": (3, 8), "fc2.bias": (3,)}
FLAT = np.full(100, 1.1) + 1e-3 * np.random.default_rng(0).normal(size=100)


def run_with(*trained: str, loss: np.ndarray = FLAT) -> Run:
    shapes = {name: ParameterSummary(shape, "float32") for name, shape in SHAPES.items()}
    return run_of(
        {
            LOSS: {"": loss},
            PARAMETER_TRAINABLE: {name: [float(name in trained)] for name in SHAPES},
            PARAMETER_OPTIMIZER: {name: [0.0 if name in trained else -1.0] for name in SHAPES},
            PARAMETER_IN_MODEL: {name: [1.0] for name in SHAPES},
        },
        meta=Meta(parameters=shapes),
    )


def test_only_biases_are_trained() -> None:
    (finding,) = said(frozen_weights, run_with("fc1.bias", "fc2.bias"))
    assert isinstance(finding, Finding)
    assert finding.confidence is Confidence.LIKELY
    assert "all 2 weight matrices are frozen" in finding.summary
    assert "fc2.weight" in finding.fix


@pytest.mark.parametrize(
    ("trained", "loss", "kind"),
    [
        (("fc1.bias", "fc2.weight", "fc2.bias"), FLAT, Clear),
        (("fc1.bias", "fc2.bias"), np.geomspace(2, 0.01, 100), Normal),  # biases are enough
        (("fc1.bias", "fc2.bias"), FLAT[:15], NotExamined),
        ((), FLAT, Clear),
    ],
)
def test_silent(trained: tuple[str, ...], loss: np.ndarray, kind: type[Verdict]) -> None:
    (verdict,) = said(frozen_weights, run_with(*trained, loss=loss))
    assert isinstance(verdict, kind)
