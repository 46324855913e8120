import pytest

from holter.diagnosis.rules.leaking_padding import leaking_padding
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal
from holter.record.signals import (
    PADDING_AMOUNT,
    PADDING_CHANGE,
    PADDING_COUNTED,
    PADDING_LENGTH,
    PADDING_ROUNDING,
)
from synthetic import found, run_of, said


def cut(change: float, amount: float | None = None, counted: float | None = None) -> Run:
    signals = {
        PADDING_CHANGE: {"a": [change], "b": [change / 10]},
        PADDING_LENGTH: {"a": [7], "b": [3]},
        PADDING_ROUNDING: {"a": [1e-5], "b": [1e-5]},
    }
    if amount is not None:
        signals[PADDING_AMOUNT] = {"a": [amount]}
    if counted is not None:
        signals[PADDING_COUNTED] = {"": [counted]}
    return run_of(signals)


def test_silent_on_rounding() -> None:
    (verdict,) = said(leaking_padding, cut(3e-7, amount=2e-7, counted=0.0))
    assert isinstance(verdict, Clear)


def test_speaks_of_what_leaks() -> None:
    (finding,) = found(leaking_padding, cut(0.8, amount=0.3))
    assert finding.confidence is Confidence.LIKELY
    assert "7 positions" in finding.summary
    assert [each.owner for each in finding.evidence] == ["a", "b"]


def test_without_anything_left_of_it_the_change_is_enough() -> None:
    assert found(leaking_padding, cut(0.8))


@pytest.mark.parametrize(("change", "amount"), [(0.8, 0.0), (0.05, 0.03)])
def test_maxima_and_little_changes_are_normal(change: float, amount: float) -> None:
    (verdict,) = said(leaking_padding, cut(change, amount=amount))
    assert isinstance(verdict, Normal)


def test_padding_in_the_loss_is_a_hint() -> None:
    (finding,) = found(leaking_padding, cut(0.0, amount=0.0, counted=0.4))
    assert finding.confidence is Confidence.HINT
    assert "40%" in finding.summary
    assert not found(leaking_padding, cut(0.0, amount=0.0, counted=0.01))
