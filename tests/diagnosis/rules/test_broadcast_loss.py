import numpy as np
import pytest

from holter.diagnosis.rule import NO_DAMAGE
from holter.diagnosis.rules.broadcast_loss import broadcast_loss
from holter.record import Run
from holter.record.events import Event, HandwrittenLoss, Occurrence
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined
from holter.record.signals import (
    LOSS,
    LOSS_PAIRED_SPREAD,
    OUTPUT_SPREAD,
    OUTPUT_UNITS,
    TARGET_BROADCAST,
    TARGET_STD,
)
from synthetic import found, run_of, said


def given(
    broadcast: list[float],
    *,
    units: float = 1,
    spread: float = 0.01,
    width: float = 1.0,
    events: tuple[Event[Occurrence], ...] = (),
) -> Run:
    values = {
        TARGET_BROADCAST: broadcast,
        OUTPUT_UNITS: [units] * len(broadcast),
        OUTPUT_SPREAD: [spread] * len(broadcast),
        TARGET_STD: [width] * len(broadcast),
    }
    return run_of({signal: {"mse_loss": each} for signal, each in values.items()}, events=events)


BY_HAND = (Event(0, 0.0, HandwrittenLoss("mse_loss", "train.py:9")),)


def test_n_against_n_and_one() -> None:
    (finding,) = found(broadcast_loss, given([1.0] * 19 + [0.0]))
    assert finding.confidence is Confidence.CERTAIN
    assert "95 %" in finding.summary
    assert [each.signal for each in finding.evidence] == [TARGET_BROADCAST, OUTPUT_SPREAD]


def test_a_handwritten_loss_whose_predictions_collapse_is_likely_and_named_by_its_place() -> None:
    (finding,) = found(broadcast_loss, given([1.0] * 20, events=BY_HAND))
    assert finding.confidence is Confidence.LIKELY
    assert finding.summary.startswith("the hand-written mse_loss (train.py:9) broadcasts")


def test_pairs_in_a_handwritten_loss_are_harmless_if_predictions_vary() -> None:
    (note,) = said(broadcast_loss, given([1.0] * 20, spread=0.8, events=BY_HAND))
    assert isinstance(note, Normal)
    assert note.exception == NO_DAMAGE


def test_sequences_whose_predictions_collapse_are_likely() -> None:
    (finding,) = found(broadcast_loss, given([1.0] * 20, units=24))
    assert finding.confidence is Confidence.LIKELY


def test_sequences_whose_predictions_vary_are_harmless() -> None:
    (note,) = said(broadcast_loss, given([1.0] * 20, units=32, spread=0.8))
    assert isinstance(note, Normal)
    assert note.exception == NO_DAMAGE


def test_sequences_of_unknown_spread_make_a_hint() -> None:
    (finding,) = found(broadcast_loss, given([1.0] * 20, units=32, spread=np.nan))
    assert finding.confidence is Confidence.HINT


@pytest.mark.parametrize(("width", "applies"), [(0.0, True), (0.01, False)])
def test_equal_targets(width: float, applies: bool) -> None:
    (verdict,) = said(broadcast_loss, given([1.0] * 50, width=width))
    assert isinstance(verdict, Normal if applies else Finding)
    assert not isinstance(verdict, Normal) or verdict.exception == "equal-targets"


@pytest.mark.parametrize("broadcast", [[0.0] * 50, [1.0] * 40 + [0.0] * 10])
def test_silent(broadcast: list[float]) -> None:
    (verdict,) = said(broadcast_loss, given(broadcast))
    assert isinstance(verdict, Clear)


def test_nonfinite_spread_is_left_out() -> None:
    (finding,) = found(broadcast_loss, given([1.0] * 20, spread=np.nan))
    assert [each.signal for each in finding.evidence] == [TARGET_BROADCAST]


def test_too_short() -> None:
    (verdict,) = said(broadcast_loss, given([1.0] * 2))
    assert isinstance(verdict, NotExamined)


@pytest.mark.parametrize(("spread", "confidence"), [(0.05, Confidence.LIKELY), (0.9, None)])
def test_differences_beside_a_loss_function(spread: float, confidence: Confidence | None) -> None:
    """Predictions that differ as targets do are compared in pairs on purpose."""
    signals = {LOSS: {"": [1.0] * 20}, LOSS_PAIRED_SPREAD: {"": [1.0] * 10 + [spread] * 10}}
    (verdict,) = said(broadcast_loss, run_of(signals))
    if confidence is None:
        assert isinstance(verdict, Normal)
    else:
        assert isinstance(verdict, Finding)
        assert verdict.confidence is confidence
