import numpy as np
import pytest

from holter.diagnosis.rules.singular_operations import singular_operations
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import (
    GRAD_TOTAL_NORM,
    LOSS,
    LOSS_DIVISOR,
    LOSS_LOG_ARGUMENT,
    LOSS_ROOT_ARGUMENT,
    Signal,
)
from synthetic import found, run_of, said, series

FAILS = 30


def broken(
    signal: Signal | None, values: list[float], *, steps: list[int] | None = None, loss: bool = True
) -> Run:
    """A run whose loss, or else whose gradient, is not finite from step 30 on."""
    fine, bad = np.ones(40), np.where(np.arange(40) < FAILS, 1.0, np.nan)
    read = {LOSS: {"": bad if loss else fine}, GRAD_TOTAL_NORM: {"": bad}}
    if signal is not None:
        read[signal] = {"": series(values, steps=steps)}
    return run_of(read)


@pytest.mark.parametrize("signal", [LOSS_LOG_ARGUMENT, LOSS_ROOT_ARGUMENT, LOSS_DIVISOR])
@pytest.mark.parametrize("loss", [True, False])
def test_zero_at_the_step_that_fails(signal: Signal, loss: bool) -> None:
    run = broken(signal, [0.5] * FAILS + [0.0] + [np.nan] * 9, loss=loss)
    (finding,) = found(singular_operations, run)
    assert (finding.confidence, finding.onset) == (Confidence.CERTAIN, FAILS)
    assert [each.signal for each in finding.evidence] == [signal]


def test_a_number_next_to_zero_shortly_before() -> None:
    run = broken(LOSS_LOG_ARGUMENT, [0.5, 1e-35, np.nan], steps=[0, 20, 35])
    (finding,) = found(singular_operations, run)
    assert finding.confidence is Confidence.LIKELY


@pytest.mark.parametrize(
    "values",
    [
        [0.5] * 40,  # it fails for another reason
        [0.5] * FAILS + [np.nan] * 10,  # what it is given was not finite before
        [0.0] * 10 + [0.5] * 30,  # zero has done no damage
    ],
)
def test_clear(values: list[float]) -> None:
    (clear,) = said(singular_operations, broken(LOSS_LOG_ARGUMENT, values))
    assert isinstance(clear, Clear)


def test_zero_in_a_run_that_stays_finite_is_clear() -> None:
    fine = [1.0] * 40
    run = run_of(
        {LOSS: {"": fine}, GRAD_TOTAL_NORM: {"": fine}, LOSS_ROOT_ARGUMENT: {"": [0.0] * 40}}
    )
    (clear,) = said(singular_operations, run)
    assert isinstance(clear, Clear)


def test_a_loss_without_such_operations_is_not_examined() -> None:
    (verdict,) = said(singular_operations, broken(None, []))
    assert isinstance(verdict, NotExamined)
