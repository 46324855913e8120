import pytest

from holter.diagnosis.rules.step_without_backward import step_without_backward
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import AMP_SKIPPED, BACKWARD_CALLS, GRAD_TOTAL_NORM, UPDATE_RATIO
from synthetic import found, run_of, said


def test_every_other_step() -> None:
    run = run_of({BACKWARD_CALLS: {"": [1, 0] * 20}, GRAD_TOTAL_NORM: {"": [1.0] * 40}})
    (finding,) = found(step_without_backward, run)
    assert finding.confidence is Confidence.CERTAIN
    assert "20 of 40" in finding.summary
    assert "old gradients" in finding.summary


def test_no_gradients_were_there() -> None:
    run = run_of({BACKWARD_CALLS: {"": [1, 0] * 20}, GRAD_TOTAL_NORM: {"": [1.0, 0.0] * 20}})
    (finding,) = found(step_without_backward, run)
    assert "applied again" not in finding.summary


@pytest.mark.parametrize(
    "calls",
    [
        [1] * 40,
        [4] * 40,  # accumulation
        [1] * 36 + [0] * 4,  # under five
        [1] * 300 + [0] * 10,  # rare
    ],
)
def test_clear(calls: list[int]) -> None:
    (verdict,) = said(step_without_backward, run_of({BACKWARD_CALLS: {"": calls}}))
    assert isinstance(verdict, Clear)


def test_steps_that_amp_skipped_do_not_count() -> None:
    run = run_of({BACKWARD_CALLS: {"": [1, 0] * 20}, AMP_SKIPPED: {"": [0, 1] * 20}})
    assert not found(step_without_backward, run)


@pytest.mark.parametrize("calls", [[0] * 40, [0] * 4])
def test_not_examined(calls: list[int]) -> None:
    (verdict,) = said(step_without_backward, run_of({BACKWARD_CALLS: {"": calls}}))
    assert isinstance(verdict, NotExamined)


def test_backward_is_never_called_and_nothing_moves() -> None:
    still = {BACKWARD_CALLS: {"": [0] * 40}, UPDATE_RATIO: {"weight": [0.0] * 40}}
    (finding,) = found(step_without_backward, run_of(still))
    assert finding.confidence is Confidence.LIKELY
    assert "never called" in finding.summary
    moving = {**still, UPDATE_RATIO: {"weight": [1e-3] * 40}}  # an optimizer of its own kind
    assert not found(step_without_backward, run_of(moving))


def test_gradients_cleared_before_the_step() -> None:
    still = {BACKWARD_CALLS: {"": [1] * 40}, UPDATE_RATIO: {"weight": [0.0] * 40}}
    (finding,) = found(step_without_backward, run_of(still))
    assert finding.confidence is Confidence.LIKELY
    assert "cleared" in finding.summary
    moving = {**still, UPDATE_RATIO: {"weight": [0.0] * 39 + [1e-3]}}
    assert not found(step_without_backward, run_of(moving))
    read = {**still, GRAD_TOTAL_NORM: {"": [1.0] * 40}}
    assert not found(step_without_backward, run_of(read))
