import pytest

from holter.diagnosis.rules.repeated_backward import repeated_backward
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import BACKWARD_CALLS, BACKWARD_REPEATED
from synthetic import found, run_of, said


def test_twice_at_every_step() -> None:
    run = run_of({BACKWARD_REPEATED: {"": [1] * 20}, BACKWARD_CALLS: {"": [2] * 20}})
    (finding,) = found(repeated_backward, run)
    assert finding.confidence is Confidence.CERTAIN
    assert "2 times" in finding.summary


@pytest.mark.parametrize("counts", [[0] * 20, [1, 0] * 20, [1] * 4 + [0] * 60])
def test_clear(counts: list[int]) -> None:
    (verdict,) = said(repeated_backward, run_of({BACKWARD_REPEATED: {"": counts}}))
    assert isinstance(verdict, Clear)


def test_too_short() -> None:
    (verdict,) = said(repeated_backward, run_of({BACKWARD_REPEATED: {"": [1] * 4}}))
    assert isinstance(verdict, NotExamined)
