import numpy as np
import pytest

from holter.diagnosis.causes import explained_by
from holter.diagnosis.rules.tiny_batch_norm import tiny_batch_norm
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import (
    DATA_BATCH_SIZE,
    DATA_BATCHES,
    LOSS,
    LOSS_ROOT_SHARE,
    NORMALISATION_SAMPLES,
    VAL_LOSS,
)
from synthetic import found, run_of, said, series

STEPS = 100
LOSSES = 2.0 * 0.99 ** np.arange(STEPS)


def run_with(values: list[float], validation: list[float] | None = None, share: float = 1.0) -> Run:
    signals = {NORMALISATION_SAMPLES: {"bn": values}, LOSS: {"": share * LOSSES}}
    if validation is not None:
        signals[VAL_LOSS] = {"mse_loss": series(validation, [24, 49, 74, 99])}
        signals[LOSS_ROOT_SHARE] = {"": share * np.ones(STEPS)}
    return run_of(signals)


def test_two_values() -> None:
    (finding,) = found(tiny_batch_norm, run_with([2.0] * STEPS))
    assert finding.confidence is Confidence.HINT
    assert "bn" in finding.summary


@pytest.mark.parametrize("share", [1.0, 64.0])  # a mean, and a sum over 64 elements
def test_with_a_validation_that_is_worse_from_the_start(share: float) -> None:
    (finding,) = found(tiny_batch_norm, run_with([2.0] * STEPS, [5.0, 9.0, 4.0, 7.0], share))
    assert finding.confidence is Confidence.LIKELY
    assert {"validation-mismatch", "erratic-validation"} <= explained_by(finding.rule)


def test_a_validation_that_is_as_good_makes_it_a_hint() -> None:
    (finding,) = found(tiny_batch_norm, run_with([2.0] * STEPS, [1.7, 1.4, 1.2, 9.0]))
    assert finding.confidence is Confidence.HINT


def test_boundary_and_a_last_batch_that_is_small() -> None:
    assert found(tiny_batch_norm, run_with([4.0] * STEPS))
    (verdict,) = said(tiny_batch_norm, run_with([5.0] * STEPS))
    assert isinstance(verdict, Clear)
    (verdict,) = said(tiny_batch_norm, run_with([32.0, 32.0, 32.0, 2.0] * 25))
    assert isinstance(verdict, Clear)


def test_a_validation_that_is_not_finite() -> None:
    assert found(tiny_batch_norm, run_with([2.0] * STEPS, [np.nan] * 4))


def test_too_few_samples() -> None:
    (verdict,) = said(tiny_batch_norm, run_with([2.0] * 4))
    assert isinstance(verdict, NotExamined)


def test_two_images_are_a_hint_where_validation_is_far_off() -> None:
    def of(samples: float, last: float) -> Run:
        signals = {
            NORMALISATION_SAMPLES: {"bn": [18.0] * STEPS},
            LOSS: {"": LOSSES},
            LOSS_ROOT_SHARE: {"": np.ones(STEPS)},
            DATA_BATCH_SIZE: {"loader": [samples] * STEPS},
            DATA_BATCHES: {"loader": [1.0] * STEPS},
            VAL_LOSS: {"mse_loss": series([last], [99])},
        }
        return run_of(signals)

    assert found(tiny_batch_norm, of(2, 0.1))
    assert not found(tiny_batch_norm, of(2, 0.7))
    assert not found(tiny_batch_norm, of(4, 0.1))
