import math

import pytest

from holter.diagnosis.rules.nonfinite_loss import nonfinite_loss
from holter.record.findings import Clear, Confidence, Normal
from holter.record.signals import AMP_SKIPPED, BACKWARD_CALLS, GRAD_TOTAL_NORM, LOSS
from synthetic import found, run_of, said


def test_names_the_first_bad_step() -> None:
    (finding,) = found(nonfinite_loss, run_of({LOSS: {"": [2.0, 1.0, math.nan, math.nan]}}))
    assert finding.onset == 2
    assert finding.confidence is Confidence.CERTAIN
    assert "never comes back" in finding.summary


def test_infinity_counts_and_may_come_back() -> None:
    (finding,) = found(nonfinite_loss, run_of({LOSS: {"": [2.0, -math.inf, 1.0, 1.0]}}))
    assert finding.onset == 1
    assert "comes back 2 times" in finding.summary


def test_steps_that_amp_skipped_are_left_out() -> None:
    run = run_of({LOSS: {"": [math.inf, 1.0]}, AMP_SKIPPED: {"": [1.0, 0.0]}})
    (verdict,) = said(nonfinite_loss, run)
    assert isinstance(verdict, Clear)


def guarded(*bad: int, norm: float = 1.0, calls: float = 2.0) -> dict:
    """Losses of 100 steps, some not finite, and what is known of their gradients."""
    at = set(bad)
    return {
        LOSS: {"": [math.nan if each in at else 1.0 for each in range(100)]},
        GRAD_TOTAL_NORM: {"": [norm if each in at else 1.0 for each in range(100)]},
        BACKWARD_CALLS: {"": [calls if each in at else 1.0 for each in range(100)]},
    }


def test_rare_losses_that_the_script_throws_away_are_noted() -> None:
    note, verdict = said(nonfinite_loss, run_of(guarded(30, 70)))
    assert isinstance(note, Normal)
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(
    "signals",
    [
        guarded(30, 70, calls=1.0),  # the update was made
        guarded(30, 70, norm=math.nan),
        guarded(*range(20, 60)),  # most of the time
    ],
)
def test_losses_that_are_not_thrown_away_are_found(signals: dict) -> None:
    assert found(nonfinite_loss, run_of(signals))


def test_a_loss_that_grew_before_asks_for_a_smaller_step() -> None:
    (finding,) = found(nonfinite_loss, run_of({LOSS: {"": [1.0, 30.0, 900.0, 1e9, math.inf]}}))
    assert "grew from 1 to 1e+09" in finding.evidence[0].says
    assert "learning rate" in finding.fix


def test_a_loss_that_came_without_warning_asks_for_the_batch() -> None:
    (finding,) = found(nonfinite_loss, run_of({LOSS: {"": [1.0, 0.9, 0.8, math.nan]}}))
    assert "without warning" in finding.evidence[0].says
    assert "batch" in finding.fix
    assert "step 3" in finding.fix


def test_the_first_loss_may_be_bad() -> None:
    (finding,) = found(nonfinite_loss, run_of({LOSS: {"": [math.nan, math.nan]}}))
    assert finding.onset == 0
    assert "first batch" in finding.fix
