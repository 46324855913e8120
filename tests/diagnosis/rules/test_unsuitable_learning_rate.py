import numpy as np
import pytest

from holter.diagnosis.rules.unsuitable_learning_rate import unsuitable_learning_rate
from holter.record import Run
from holter.record.findings import Clear, Confidence, Finding, NotExamined, Severity, Verdict
from holter.record.signals import LR_RANGE_END, LR_RANGE_HELD
from sweeps import ENDS, run_with
from synthetic import said


def verdict(run: Run, **options: float) -> Verdict:
    (only,) = said(unsuitable_learning_rate, run, **options)
    return only


@pytest.mark.parametrize("peak", [1e-3, 2e-3, 4e-3, 8e-3])
def test_a_rate_that_gains_is_clear(peak: float) -> None:
    assert isinstance(verdict(run_with(peak)), Clear)


def test_a_rate_beyond_the_edge() -> None:
    found = verdict(run_with(0.2))
    assert isinstance(found, Finding)
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.LIKELY)
    assert {each.signal for each in found.evidence} == {LR_RANGE_END, LR_RANGE_HELD}
    assert "0.2" in found.summary
    assert "0.0023" in found.fix


def test_a_rate_with_which_the_loss_is_not_finite() -> None:
    found = verdict(run_with(0.2, ends=ENDS | {0.2: np.inf}))
    assert isinstance(found, Finding)
    assert found.confidence is Confidence.LIKELY


def test_a_schedule_that_warms_up_may_stand_it() -> None:
    found = verdict(run_with(0.2, now=1e-4))
    assert isinstance(found, Finding)
    assert found.confidence is Confidence.HINT


def test_a_training_that_fails_where_sweeps_do_not_is_a_hint() -> None:
    found = verdict(run_with(0.2, edge=5.0))
    assert isinstance(found, Finding)
    assert found.confidence is Confidence.HINT


def test_a_high_rate_that_gains_little_may_still_decay() -> None:
    found = verdict(run_with(0.06))
    assert isinstance(found, Finding)
    assert (found.severity, found.confidence) == (Severity.INFO, Confidence.HINT)


def test_a_rate_that_moves_nothing() -> None:
    found = verdict(run_with(1e-6))
    assert isinstance(found, Finding)
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.LIKELY)


def test_a_low_rate_that_gains_is_no_more_than_told() -> None:
    found = verdict(run_with(3e-5))
    assert isinstance(found, Finding)
    assert (found.severity, found.confidence) == (Severity.INFO, Confidence.HINT)
    assert isinstance(verdict(run_with(3e-5), times=100.0), Clear)


def test_a_warm_up_by_hand_is_not_low() -> None:
    assert isinstance(verdict(run_with(1e-6, given=3e-3)), Clear)


def test_sweeps_alone_give_a_hint() -> None:
    found = verdict(run_with(0.5, tried=False))
    assert isinstance(found, Finding)
    assert found.confidence is Confidence.HINT
    assert isinstance(verdict(run_with(3e-3, tried=False)), Clear)


def test_a_test_that_says_nothing() -> None:
    assert isinstance(verdict(run_with(0.2, moved=0.0)), NotExamined)
