import pytest

from holter.diagnosis.rules.uneven_accumulation import uneven_accumulation
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal
from holter.record.signals import (
    ACCUMULATION_BATCHES,
    ACCUMULATION_DEVIATION,
    ACCUMULATION_RESIDUAL,
    ACCUMULATION_SCALE,
    ACCUMULATION_TARGETS,
)
from synthetic import found, run_of, said


def compared(
    mean: float = 1e-7,
    scaled: float | None = None,
    by_targets: float | None = None,
    *,
    scale: float = 1.0,
    deviation: float | None = None,
) -> Run:
    residuals = {
        "another order": [1e-7],
        "mean": [mean],
        "scaled mean": [mean if scaled is None else scaled],
        "mean by targets": [mean if by_targets is None else by_targets],
    }
    targets = {"parts of a batch": [80, 20, 50, 50]}
    signals = {
        ACCUMULATION_RESIDUAL: residuals,
        ACCUMULATION_SCALE: {"": [scale]},
        ACCUMULATION_BATCHES: {"": [1 if deviation is None else 4]},
    }
    if deviation is not None:
        targets["batches of a step"] = [300, 12, 150, 90]
        signals[ACCUMULATION_DEVIATION] = {"": [deviation]}
    return run_of({**signals, ACCUMULATION_TARGETS: targets})


def test_silent_on_means_over_samples() -> None:
    (verdict,) = said(uneven_accumulation, compared(deviation=0.0))
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(
    "run",
    [
        compared(0.75, scaled=1e-7, by_targets=0.75, scale=4.0),  # a sum
        compared(0.4, scaled=0.35),  # a contrastive loss
        compared(0.2, by_targets=1e-7),  # over targets, but nothing is accumulated
        compared(0.2, by_targets=1e-7, deviation=0.03),  # over targets, much the same
    ],
)
def test_normal(run: Run) -> None:
    (verdict,) = said(uneven_accumulation, run)
    assert isinstance(verdict, Normal)


def test_speaks_where_batches_of_a_step_differ() -> None:
    (finding,) = found(uneven_accumulation, compared(0.2, by_targets=1e-7, deviation=0.31))
    assert finding.confidence is Confidence.LIKELY
    assert "12 to 300 targets" in finding.summary
    assert "31 %" in finding.summary
