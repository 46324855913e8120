import numpy as np
import pytest

from holter.diagnosis.rules.validation_with_gradients import validation_with_gradients
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined, Severity
from holter.record.signals import LOSS, MODE_TRAINING, VAL_GRAPH_FRACTION, VAL_LOSS
from synthetic import found, run_of, said, series

STEPS = 100


def run_with(share: list[float], *, every: int = 10, training: float = 1.0) -> Run:
    passes = [every * (each + 1) - 1 for each in range(len(share))]
    return run_of(
        {
            LOSS: {"": np.ones(STEPS)},
            MODE_TRAINING: {"Net": np.full(STEPS, training)},
            VAL_LOSS: {"cross_entropy": series(np.full(len(share), np.nan), passes)},
            VAL_GRAPH_FRACTION: {"cross_entropy": series(share, passes)},
        }
    )


def test_fires_on_passes_with_graphs() -> None:
    (finding,) = found(validation_with_gradients, run_with([1.0] * 6))
    assert finding.confidence is Confidence.CERTAIN
    assert finding.severity is Severity.INFO
    assert finding.onset == 9


@pytest.mark.parametrize("share", [[0.0] * 6, [0.5] * 6, [1.0, 0, 0, 0, 0, 0]])
def test_passes_without_are_clear(share: list[float]) -> None:
    (verdict,) = said(validation_with_gradients, run_with(share))
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(
    ("run", "because"),
    [
        (run_with([1.0]), "1 of the 2"),
        (run_with([1.0] * 50, every=2), "most steps"),
        (run_with([1.0] * 6, training=0.0), "eval mode"),
    ],
)
def test_says_what_it_lacks(run: Run, because: str) -> None:
    (verdict,) = said(validation_with_gradients, run)
    assert isinstance(verdict, NotExamined)
    assert because in verdict.because
