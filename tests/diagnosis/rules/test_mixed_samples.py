import numpy as np
import pytest

from holter.diagnosis.rules.mixed_samples import mixed_samples
from holter.record import Event, Run
from holter.record.events import MixingModule
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import (
    MIXING_MODULES,
    MIXING_OTHERS,
    MIXING_OWN,
    MIXING_ROUNDING,
    MIXING_SHUFFLED,
)
from synthetic import found, run_of, said, series

EARLY, LATE = [0, 1], [3, 4, 5, 6, 7]  # sample 2 is the one that is replaced


def replaced(
    early: float = 0.0,
    late: float = 0.0,
    *,
    own: float = 2.0,
    shuffled: bool = True,
    **facts: object,
) -> Run:
    others = series([early] * len(EARLY) + [late] * len(LATE), EARLY + LATE)
    signals = {
        MIXING_OWN: {"sample 2": [own]},
        MIXING_OTHERS: {"sample 2": others},
        MIXING_ROUNDING: {"sample 2": [1e-6]},
        MIXING_SHUFFLED: {"": [float(shuffled)]},
    }
    events = []
    if facts:
        signals[MIXING_MODULES] = {"rnn": series([0.5], [4])}
        events = [Event(0, 0.0, MixingModule("rnn", **{"type": "LSTM", **facts}))]
    return run_of(signals, events=events)


@pytest.mark.parametrize("change", [0.0, 1e-7, 1e-6])
def test_silent_up_to_rounding(change: float) -> None:
    (verdict,) = said(mixed_samples, replaced(change, change))
    assert isinstance(verdict, Clear)


def test_tiny_beside_its_own_change_is_clear() -> None:
    assert found(mixed_samples, replaced(2e-6, 2e-6)) == []
    assert found(mixed_samples, replaced(2e-6, 2e-6), min_share=0.0)


def test_a_sample_that_does_not_change_itself_tells_nothing() -> None:
    (verdict,) = said(mixed_samples, replaced(own=0.0))
    assert isinstance(verdict, NotExamined)


def test_likely_where_samples_are_shuffled_else_a_hint() -> None:
    (finding,) = found(mixed_samples, replaced(0.1, 0.3))
    assert finding.confidence is Confidence.LIKELY
    assert "7 of the 7 others" in finding.summary
    (finding,) = found(mixed_samples, replaced(0.1, 0.3, shuffled=False))
    assert finding.confidence is Confidence.HINT


def test_a_known_mistake_is_certain_and_named() -> None:
    (finding,) = found(mixed_samples, replaced(0.0, 0.3, batch_first=False))
    assert finding.confidence is Confidence.CERTAIN
    assert finding.evidence[1].owner == "rnn"
    (finding,) = found(mixed_samples, replaced(0.3, 0.3, dim=0, shuffled=False))
    assert finding.confidence is Confidence.LIKELY


def test_a_sequence_that_is_not_shuffled_is_normal() -> None:
    (note,) = said(mixed_samples, replaced(0.0, 0.3, shuffled=False))
    assert isinstance(note, Normal)
    assert note.exception == "one-sequence"


def test_batch_norm_without_statistics_is_normal() -> None:
    (note,) = said(mixed_samples, replaced(0.1, 0.1, batch_norm=True))
    assert isinstance(note, Normal)
    assert note.exception == "batch-statistics"


def test_infinite_changes() -> None:
    assert found(mixed_samples, replaced(np.inf, 0.0))
