import math

from holter.findings import Clear, Confidence
from holter.rules.nonfinite_loss import nonfinite_loss
from holter.signals import AMP_SKIPPED, LOSS
from synthetic import found, run_of


def test_names_the_first_bad_step() -> None:
    (finding,) = found(nonfinite_loss, run_of({LOSS: {"": [2.0, 1.0, math.nan, math.nan]}}))
    assert finding.onset == 2
    assert finding.confidence is Confidence.CERTAIN
    assert "never comes back" in finding.summary


def test_infinity_counts_and_may_come_back() -> None:
    (finding,) = found(nonfinite_loss, run_of({LOSS: {"": [2.0, -math.inf, 1.0, 1.0]}}))
    assert finding.onset == 1
    assert "came back 2 times" in finding.summary


def test_steps_that_amp_skipped_are_left_out() -> None:
    run = run_of({LOSS: {"": [math.inf, 1.0]}, AMP_SKIPPED: {"": [1.0, 0.0]}})
    (verdict,) = nonfinite_loss.function(run)
    assert isinstance(verdict, Clear)
