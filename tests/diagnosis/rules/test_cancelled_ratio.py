import numpy as np
import pytest

from holter.diagnosis.rules.cancelled_ratio import cancelled_ratio
from holter.record.findings import Clear, Finding, NotExamined, Verdict
from holter.record.signals import LOSS, LOSS_RATIO_CANCELLED
from synthetic import run_of, said

LEVEL = np.full(50, 1.0)


def verdict_of(read: list[float]) -> Verdict:
    run = run_of({LOSS: {"": LEVEL}, LOSS_RATIO_CANCELLED: {"": read}})
    (verdict,) = said(cancelled_ratio, run)
    return verdict


def test_a_ratio_that_is_always_one() -> None:
    assert isinstance(verdict_of([1.0] * 6), Finding)


@pytest.mark.parametrize("read", [[1.0, 0.0, 1.0, 0.0, 1.0, 1.0], [0.0] * 8])
def test_a_ratio_that_moves(read: list[float]) -> None:
    assert isinstance(verdict_of(read), Clear)


def test_few_steps_tell_nothing() -> None:
    assert isinstance(verdict_of([1.0, 1.0]), NotExamined)
