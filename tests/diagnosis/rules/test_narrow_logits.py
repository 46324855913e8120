import pytest

from holter.diagnosis.rules.narrow_logits import narrow_logits
from holter.record import Run
from holter.record.findings import Clear
from holter.record.signals import (
    ACCURACY,
    LOSS_MEAN,
    OUTPUT_MAX,
    OUTPUT_MIN,
    OUTPUT_PROBABILITY_FRACTION,
    OUTPUT_UNITS,
)
from synthetic import found, run_of, said

STEPS = 40


def _run(
    *,
    span: float,
    accuracy: float = 0.9,
    units: int = 40,
    grows: float = 1.0,
    loss: float = 3.5,
) -> Run:
    growth = [grows ** (step / STEPS) for step in range(STEPS)]
    return run_of(
        {
            OUTPUT_MIN: {"cross_entropy": [-span / 2 * each for each in growth]},
            OUTPUT_MAX: {"cross_entropy": [span / 2 * each for each in growth]},
            OUTPUT_UNITS: {"cross_entropy": [units] * STEPS},
            ACCURACY: {"cross_entropy": [accuracy] * STEPS},
            LOSS_MEAN: {"cross_entropy": [3.6] * STEPS + [loss] * STEPS},
            OUTPUT_PROBABILITY_FRACTION: {"cross_entropy": [0.0] * STEPS},
        }
    )


def test_outputs_that_are_right_and_close_together_are_reported() -> None:
    (finding,) = found(narrow_logits, _run(span=0.2))
    assert "3.49" in finding.summary  # log(1 + 39 exp(-0.2))


@pytest.mark.parametrize(
    "run",
    [
        _run(span=8.0),
        _run(span=0.2, accuracy=0.1),
        _run(span=0.2, grows=20.0),
        _run(span=0.76, accuracy=0.63, units=2, loss=0.4),
        _run(span=0.2, loss=0.1),
    ],
    ids=["wide", "wrong", "growing", "as sure as right", "of earlier steps"],
)
def test_wide_wrong_or_growing_outputs_are_not(run: Run) -> None:
    (verdict,) = said(narrow_logits, run)
    assert isinstance(verdict, Clear)
