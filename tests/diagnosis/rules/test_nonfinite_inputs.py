import numpy as np
import pytest

from holter.diagnosis.rules.nonfinite_inputs import nonfinite_inputs
from holter.record import Run, Series
from holter.record.findings import Clear, Confidence, Normal
from holter.record.signals import (
    AMP_SCALE,
    BACKWARD_CALLS,
    GRAD_TOTAL_NORM,
    INPUT_NONFINITE,
    LOSS,
    Signal,
)
from synthetic import found, run_of, said, series

Readings = list[float] | Series


def given(
    counts: Readings, losses: Readings, norms: Readings | None = None, **models: Readings
) -> Run:
    signals: dict[Signal, dict[str, Readings]] = {
        INPUT_NONFINITE: {"Net": counts, **models},
        LOSS: {"": losses},
    }
    if norms is not None:
        signals[GRAD_TOTAL_NORM] = {"": norms}
    return run_of(signals)


def test_the_loss_is_lost_with_the_inputs() -> None:
    (finding,) = found(nonfinite_inputs, given([0] * 5 + [3] + [0] * 5, [1.0] * 5 + [np.nan] * 6))
    assert finding.confidence is Confidence.CERTAIN
    assert finding.onset == 5
    assert "3 NaN" in finding.summary


@pytest.mark.parametrize("sampled", [range(100), range(31, 100)])
def test_a_rare_batch_that_the_script_discards_is_excused(sampled: range) -> None:
    bad = np.isin(np.arange(100), [30, 70])
    signals = {
        INPUT_NONFINITE: {"Net": series(np.where(bad, 3.0, 0.0)[list(sampled)], sampled)},
        LOSS: {"": np.where(bad, np.nan, 1.0)},
        GRAD_TOTAL_NORM: {"": np.ones(100)},
    }
    assert found(nonfinite_inputs, run_of(signals))
    twice = {BACKWARD_CALLS: {"": np.where(bad, 2.0, 1.0)}}
    (note,) = said(nonfinite_inputs, run_of({**signals, **twice}))
    assert isinstance(note, Normal)
    assert note.exception == "discarded-by-script"


def test_losses_are_read_now_and_then() -> None:
    losses = series([1.0, 1.0, np.nan], [0, 16, 32])
    (finding,) = found(nonfinite_inputs, given([0] * 20 + [1] * 20, losses))
    assert finding.onset == 20


def test_only_the_gradients_are_lost() -> None:
    run = given([0, 0, 2, 0], [1.0] * 4, [1.0, 1.0, np.nan, 1.0])
    (finding,) = found(nonfinite_inputs, run)
    assert finding.evidence[1].signal is GRAD_TOTAL_NORM


def test_the_first_step_was_not_seen() -> None:
    counts = series([64.0] * 9, range(1, 10))
    (finding,) = found(nonfinite_inputs, given(counts, [np.nan] * 10))
    assert finding.confidence is Confidence.LIKELY
    assert finding.onset == 0
    assert "step 0" in finding.summary


def test_a_bad_batch_went_by_unseen() -> None:
    counts = series([0.0, 0.0, 5.0], [0, 8, 16])
    (finding,) = found(nonfinite_inputs, given(counts, [1.0] * 10 + [np.nan] * 10))
    assert finding.confidence is Confidence.LIKELY
    assert finding.onset == 10


@pytest.mark.parametrize(
    ("counts", "losses", "norms"),
    [
        ([4] * 30, [1.0] * 30, [1.0] * 30),  # the model masks missing values
        ([4] * 30, [1.0] * 20 + [np.nan] * 10, None),  # and diverges for another reason
        ([4] * 30, [1.0] * 30, [np.inf] * 3 + [1.0] * 27),  # AMP's first skips
    ],
)
def test_finite_losses_on_such_inputs_are_harmless(
    counts: list[float], losses: list[float], norms: list[float] | None
) -> None:
    (normal,) = said(nonfinite_inputs, given(counts, losses, norms))
    assert isinstance(normal, Normal)
    assert normal.exception == "no-damage"


@pytest.mark.parametrize(
    ("counts", "losses", "norms"),
    [
        ([0] * 15 + [4] * 15, [1.0] * 10 + [np.nan] * 20, None),
        ([0] * 15 + [4] * 15, [1.0] * 15 + [np.nan] * 15, [1.0] * 14 + [np.nan] * 16),
    ],
)
def test_inputs_of_a_model_that_was_broken_before_are_excused(
    counts: list[float], losses: list[float], norms: list[float] | None
) -> None:
    (normal,) = said(nonfinite_inputs, given(counts, losses, norms))
    assert isinstance(normal, Normal)
    assert normal.exception == "already-nonfinite"


def test_with_amp_lost_gradients_before_are_no_sign() -> None:
    run = run_of(
        {
            INPUT_NONFINITE: {"Net": [0, 0, 1]},
            LOSS: {"": [1.0, 1.0, np.nan]},
            GRAD_TOTAL_NORM: {"": [np.inf, np.inf, np.nan]},
            AMP_SCALE: {"": [65536.0, 32768.0, 16384.0]},
        }
    )
    assert found(nonfinite_inputs, run)


def test_of_several_models_one_may_be_given_what_another_made() -> None:
    counts = series([0.0, 0.0, 5.0], [0, 8, 16])
    run = given(counts, [1.0] * 10 + [np.nan] * 10, Generator=counts)
    assert {each.confidence for each in found(nonfinite_inputs, run)} == {Confidence.HINT}


def test_finite() -> None:
    (verdict,) = said(nonfinite_inputs, given([0] * 9, [np.nan] * 9))
    assert isinstance(verdict, Clear)


def test_nothing_read() -> None:
    assert not said(nonfinite_inputs, given([], [1.0]))
