import numpy as np
import pytest

from holter.diagnosis.rules.broadcast_loss import broadcast_loss
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import OUTPUT_SPREAD, OUTPUT_UNITS, TARGET_BROADCAST, TARGET_STD
from synthetic import found, run_of, said


def given(
    broadcast: list[float], *, units: float = 1, spread: float = 0.01, width: float = 1.0
) -> Run:
    values = {
        TARGET_BROADCAST: broadcast,
        OUTPUT_UNITS: [units] * len(broadcast),
        OUTPUT_SPREAD: [spread] * len(broadcast),
        TARGET_STD: [width] * len(broadcast),
    }
    return run_of({signal: {"mse_loss": each} for signal, each in values.items()})


def test_n_against_n_and_one() -> None:
    (finding,) = found(broadcast_loss, given([1.0] * 19 + [0.0]))
    assert finding.confidence is Confidence.CERTAIN
    assert "95%" in finding.summary
    assert [each.signal for each in finding.evidence] == [TARGET_BROADCAST, OUTPUT_SPREAD]


def test_sequences_whose_predictions_collapse_are_likely() -> None:
    (finding,) = found(broadcast_loss, given([1.0] * 20, units=24))
    assert finding.confidence is Confidence.LIKELY


def test_all_pairs_may_be_meant() -> None:
    normal, clear = said(broadcast_loss, given([1.0] * 20, units=32, spread=0.8))
    assert isinstance(normal, Normal)
    assert isinstance(clear, Clear)


@pytest.mark.parametrize(
    ("broadcast", "width"),
    [([0.0] * 50, 1.0), ([1.0] * 40 + [0.0] * 10, 1.0), ([1.0] * 50, 0.0)],
)
def test_silent(broadcast: list[float], width: float) -> None:
    (verdict,) = said(broadcast_loss, given(broadcast, width=width))
    assert isinstance(verdict, Clear)


def test_spread_that_is_not_finite_is_left_out() -> None:
    (finding,) = found(broadcast_loss, given([1.0] * 20, spread=np.nan))
    assert [each.signal for each in finding.evidence] == [TARGET_BROADCAST]


def test_too_short() -> None:
    (verdict,) = said(broadcast_loss, given([1.0] * 2))
    assert isinstance(verdict, NotExamined)
