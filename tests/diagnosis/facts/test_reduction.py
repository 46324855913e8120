"""Sums and means of the training loss, on runs made by hand."""

import numpy as np
import pytest

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.reduction import summed_elements
from holter.record import Run
from holter.record.signals import (
    BACKWARD_CALLS,
    LOSS,
    LOSS_ELEMENTS,
    LOSS_ROOT_SHARE,
    LOSS_SUMMED,
    OUTPUT_SIZE,
    TARGET_ENTROPY,
)
from synthetic import run_of

STEPS = 60
SIZES = np.where(np.arange(STEPS) % 10 == 9, 8, 64).astype(float)  # the last batch is smaller
MEAN = 2.3 * 0.97 ** np.arange(STEPS)


def summed(divisor: np.ndarray | float = 1.0, calls: int = 1) -> Run:
    """A run whose loss function sums, and whose script divides by `divisor`."""
    return run_of(
        {
            LOSS: {"": MEAN * calls * SIZES / divisor},
            LOSS_ROOT_SHARE: {"": SIZES / divisor},
            LOSS_ELEMENTS: {"nll_loss": SIZES * calls},
            LOSS_SUMMED: {"nll_loss": np.ones(STEPS)},
            BACKWARD_CALLS: {"": np.full(STEPS, calls)},
            OUTPUT_SIZE: {"nll_loss": np.ones(STEPS)},
            TARGET_ENTROPY: {"nll_loss": np.full(STEPS, 2.3)},
        }
    )


@pytest.mark.parametrize("calls", [1, 4])
def test_a_sum_does_not_depend_on_the_size_of_a_batch(calls: int) -> None:
    facts = Facts(summed(calls=calls))
    assert summed_elements(facts) is not None
    assert facts.curve.values == pytest.approx(64 * calls * MEAN, rel=1e-5)
    assert facts.baseline.level * facts.baseline.scale == pytest.approx(64 * calls * 2.3)
    assert facts.outcome is not None
    assert not facts.outcome.bad


def test_a_sum_that_is_divided_is_a_mean() -> None:
    facts = Facts(summed(SIZES))
    assert summed_elements(facts) is None
    assert facts.curve.values == pytest.approx(MEAN, rel=1e-5)
    assert facts.baseline.scale == pytest.approx(1)


def test_a_sum_of_unknown_length_has_no_baseline() -> None:
    run = run_of(
        {
            LOSS: {"": MEAN * SIZES},
            LOSS_SUMMED: {"nll_loss": np.ones(STEPS)},
            OUTPUT_SIZE: {"nll_loss": np.ones(STEPS)},
            TARGET_ENTROPY: {"nll_loss": np.full(STEPS, 2.3)},
        }
    )
    assert "over an unknown number of elements" in Facts(run).baseline
