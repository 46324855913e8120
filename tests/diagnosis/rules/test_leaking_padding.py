import numpy as np

from holter.diagnosis.rule import NO_DAMAGE
from holter.diagnosis.rules.leaking_padding import leaking_padding
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal
from holter.record.signals import (
    INPUT_ELEMENTS,
    LOSS_ROOT_SHARE,
    PADDING_AMOUNT,
    PADDING_CHANGE,
    PADDING_COUNTED,
    PADDING_DECISIONS,
    PADDING_LENGTH,
    PADDING_ROUNDING,
    PADDING_START,
    TARGET_ENTROPY,
)
from layered import layered
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


def trained(
    last: float, sizes: list[float], change: float = 0.8, decided: float | None = None
) -> Run:
    """A training whose loss starts at the best constant prediction, with leaking padding."""
    readings = {
        PADDING_CHANGE: {"a": change},
        PADDING_LENGTH: {"a": 7.0},
        PADDING_ROUNDING: {"a": 1e-5},
        TARGET_ENTROPY: {"cross_entropy": 1.386},
        LOSS_ROOT_SHARE: {"": 1.0},
        INPUT_ELEMENTS: {"Net": np.resize(sizes, 200)},
    }
    if decided is not None:
        readings[PADDING_DECISIONS] = {"a": decided}
    return layered(last + (1.386 - last) * np.exp(-np.arange(200) / 20), readings)


def test_batches_of_one_length_from_which_the_model_learned_are_no_damage() -> None:
    (note,) = said(leaking_padding, trained(0.1, [500.0] * 19 + [400.0]))
    assert isinstance(note, Normal)
    assert note.exception == NO_DAMAGE


def test_batches_of_one_length_are_a_hint_where_little_was_learned() -> None:
    (finding,) = found(leaking_padding, trained(1.2, [500.0]))
    assert finding.confidence is Confidence.HINT


def test_batches_of_several_lengths_are_likely() -> None:
    (finding,) = found(leaking_padding, trained(0.1, [500.0, 400.0, 600.0]))
    assert finding.confidence is Confidence.LIKELY


def test_a_small_change_is_a_hint_where_the_training_learned() -> None:
    (finding,) = found(leaking_padding, trained(0.1, [500.0, 400.0, 600.0], change=0.15))
    assert finding.confidence is Confidence.HINT
    (finding,) = found(leaking_padding, trained(1.2, [500.0, 400.0, 600.0], change=0.15))
    assert finding.confidence is Confidence.LIKELY


def test_the_same_classes_without_padding_are_a_hint_where_the_training_learned() -> None:
    sizes = [500.0, 400.0, 600.0]
    for last, decided in ((0.1, 0.0), (0.1, 0.2), (1.2, 0.0)):
        (finding,) = found(leaking_padding, trained(last, sizes, decided=decided))
        is_hint = (last, decided) == (0.1, 0.0)
        assert (finding.confidence is Confidence.HINT) is is_hint


def test_a_change_next_to_padding_alone_is_normal() -> None:
    signals = {
        PADDING_CHANGE: {"a": [0.8], "b": [0.5]},
        PADDING_START: {"a": [0.01], "b": [0.02]},
        PADDING_LENGTH: {"a": [7], "b": [3]},
        PADDING_ROUNDING: {"a": [1e-5], "b": [1e-5]},
    }
    (note,) = said(leaking_padding, run_of(signals))
    assert isinstance(note, Normal)
    assert note.exception == "next-to-padding"
    assert found(leaking_padding, run_of({**signals, PADDING_START: {"a": [0.5], "b": [0.02]}}))
