import math

import pytest

from holter.diagnosis.rules.nonfinite_loss import nonfinite_loss
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal
from holter.record.signals import AMP_SKIPPED, BACKWARD_CALLS, GRAD_TOTAL_NORM, LOSS
from synthetic import found, run_of, said


def test_names_the_first_bad_step() -> None:
    (finding,) = found(nonfinite_loss, run_of({LOSS: {"": [2.0, 1.0, math.nan, math.nan]}}))
    assert finding.onset == 2
    assert finding.confidence is Confidence.CERTAIN
    assert "no later loss" in finding.summary


def test_infinity_counts_and_may_come_back() -> None:
    (finding,) = found(nonfinite_loss, run_of({LOSS: {"": [2.0, -math.inf, 1.0, 1.0]}}))
    assert finding.onset == 1
    assert "2 later losses" in finding.summary


def skipping(bad: int, *, skips: int) -> Run:
    """The first `bad` of 20 losses are infinite, and the first `skips` steps were skipped."""
    losses = [math.inf if step < bad else 1.0 for step in range(20)]
    return run_of({LOSS: {"": losses}, AMP_SKIPPED: {"": [float(i < skips) for i in range(20)]}})


def test_steps_that_amp_skipped_are_excused() -> None:
    (note,) = said(nonfinite_loss, skipping(3, skips=3))
    assert isinstance(note, Normal)
    assert note.exception == "skipped-by-scaler"


def test_a_step_that_amp_did_not_skip_is_found() -> None:
    (finding,) = found(nonfinite_loss, skipping(4, skips=3))
    assert finding.onset == 3


def test_a_loss_that_is_skipped_most_of_the_time_is_found() -> None:
    (finding,) = found(nonfinite_loss, skipping(15, skips=15))
    assert finding.onset == 0
    assert "float32" in finding.fix
    assert not found(nonfinite_loss, skipping(15, skips=15), max_skipped=0.8)


def guarded(*bad: int, norm: float = 1.0, calls: float = 2.0) -> dict:
    """Losses of 100 steps, some not finite, with gradient norms and calls of backward."""
    return {
        LOSS: {"": [math.nan if step in bad else 1.0 for step in range(100)]},
        GRAD_TOTAL_NORM: {"": [norm if step in bad else 1.0 for step in range(100)]},
        BACKWARD_CALLS: {"": [calls if step in bad else 1.0 for step in range(100)]},
    }


def test_rare_losses_that_the_script_discards_are_excused() -> None:
    (note,) = said(nonfinite_loss, run_of(guarded(30, 70)))
    assert isinstance(note, Normal)
    assert note.exception == "discarded-by-script"


@pytest.mark.parametrize(
    "signals",
    [
        guarded(30, 70, calls=1.0),  # the update was made
        guarded(30, 70, norm=math.nan),
        guarded(*range(20, 60)),  # most of the time
    ],
)
def test_losses_that_are_not_discarded_are_found(signals: dict) -> None:
    assert found(nonfinite_loss, run_of(signals))


def test_a_loss_that_grew_before_asks_for_a_smaller_step() -> None:
    (finding,) = found(nonfinite_loss, run_of({LOSS: {"": [1.0, 30.0, 900.0, 1e9, math.inf]}}))
    assert "grew from 1 to 1e+09" in finding.evidence[0].says
    assert "learning rate" in finding.fix


def test_a_sudden_loss_asks_for_a_replay_of_the_step() -> None:
    (finding,) = found(nonfinite_loss, run_of({LOSS: {"": [1.0, 0.9, 0.8, math.nan]}}))
    assert "0.8" in finding.evidence[0].says
    assert "replay" in finding.fix
    assert "step 3" in finding.fix


def test_finite_losses_are_clear() -> None:
    (verdict,) = said(nonfinite_loss, run_of({LOSS: {"": [1.0, 0.9]}}))
    assert isinstance(verdict, Clear)


def test_the_first_loss_may_be_bad() -> None:
    (finding,) = found(nonfinite_loss, run_of({LOSS: {"": [math.nan, math.nan]}}))
    assert finding.onset == 0
    assert "first batch" in finding.fix
