import numpy as np
import pytest

from holter.diagnosis.rules.misreported_loss import misreported_loss
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined, Severity
from holter.record.signals import LOSS, LOSS_LOGGED
from synthetic import found, run_of, said, series

STEPS = 100
TRUE = np.linspace(2, 1, STEPS) + 0.05 * np.random.default_rng(0).normal(size=STEPS)
BROKEN = np.where(np.arange(STEPS) >= 60, np.nan, TRUE)
FILTERED = np.where(np.isnan(BROKEN), 1.4, BROKEN)


def run_with(loss: np.ndarray, logged: np.ndarray, every: int = 1) -> Run:
    at = range(0, len(logged), every)
    return run_of({LOSS: {"": loss}, LOSS_LOGGED: {"": series(logged[::every], at)}})


@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize("shown", [0.0, 1.4])
def test_fires_where_the_log_hides_nan(shown: float, every: int) -> None:
    (finding,) = found(
        misreported_loss, run_with(BROKEN, np.where(np.isnan(BROKEN), shown, BROKEN), every)
    )
    assert finding.confidence is Confidence.CERTAIN
    assert finding.severity is Severity.WARNING  # a preview rule fails no check
    assert 60 <= finding.onset <= 67


def test_a_single_hidden_infinity_counts() -> None:
    loss = TRUE.copy()
    loss[40] = np.inf
    (finding,) = found(misreported_loss, run_with(loss, TRUE))
    assert finding.onset == 40
    assert "39" in finding.summary


@pytest.mark.parametrize("value", [0.0, 2.0])
def test_fires_where_the_log_never_changes(value: float) -> None:
    (finding,) = found(misreported_loss, run_with(TRUE, np.full(STEPS, value)))
    assert finding.onset == 0


def test_an_honest_log_of_nan_is_clear_wherever_it_stands() -> None:
    ahead = np.append(BROKEN[1:], np.nan)  # logged before backward
    one = TRUE.copy()
    one[40] = np.nan
    for loss, logged in ((BROKEN, BROKEN), (BROKEN, ahead), (one, np.append(one[1:], 1.0))):
        assert found(misreported_loss, run_with(loss, logged)) == []


def test_running_means_are_no_misreport() -> None:
    mean = np.convolve(TRUE, np.ones(20) / 20)[:STEPS]
    assert [type(each) for each in said(misreported_loss, run_with(TRUE, mean))] == [Clear]


@pytest.mark.parametrize("factor", [64, 0.25])
def test_a_factor_is_noted(factor: float) -> None:
    note, verdict = said(misreported_loss, run_with(TRUE, factor * TRUE))
    assert isinstance(note, Normal)
    assert f"{factor:g} times" in note.summary
    assert isinstance(verdict, Clear)


def test_a_constant_loss_may_be_logged_as_one() -> None:
    assert found(misreported_loss, run_with(np.ones(STEPS), np.ones(STEPS))) == []


def test_says_what_it_lacks() -> None:
    for run in (
        run_with(TRUE[:5], TRUE[:5]),
        run_of({LOSS: {"a": TRUE}, LOSS_LOGGED: {"b": TRUE}}),
    ):
        (verdict,) = said(misreported_loss, run)
        assert isinstance(verdict, NotExamined)
