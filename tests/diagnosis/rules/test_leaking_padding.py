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


def test_a_maximum_over_positions_is_normal() -> None:
    (note,) = said(leaking_padding, cut(0.8, amount=0.0))
    assert isinstance(note, Normal)
    assert note.exception == "maximum-over-positions"


def test_a_maximum_does_not_excuse_padding_in_the_loss() -> None:
    assert found(leaking_padding, cut(0.8, amount=0.0, counted=0.4))


def test_a_little_change_is_clear() -> None:
    (verdict,) = said(leaking_padding, cut(0.05, amount=0.03))
    assert isinstance(verdict, Clear)


def test_padding_in_the_loss_is_a_hint() -> None:
    (finding,) = found(leaking_padding, cut(0.0, amount=0.0, counted=0.4))
    assert finding.confidence is Confidence.HINT
    assert "40 %" in finding.summary
    assert not found(leaking_padding, cut(0.0, amount=0.0, counted=0.01))
