import numpy as np
import pytest

from holter.diagnosis.rules.validation_in_train_mode import validation_in_train_mode
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import (
    INPUT_FINGERPRINT,
    LOSS,
    VAL_INPUT_FINGERPRINT,
    VAL_LOSS,
    VAL_MODE_TRAINING,
    VAL_TRAIN_FRACTION,
)
from synthetic import found, run_of, said, series

STEPS = 100
TRAINED = np.random.default_rng(0).random(STEPS)


def run_with(
    share: list[float],
    *,
    every: int = 10,
    fingerprints: list[float] | None = None,
    mode: float = 1.0,
) -> Run:
    passes = [every * (each + 1) - 1 for each in range(len(share))]
    given = [7.0] * len(share) if fingerprints is None else fingerprints
    return run_of(
        {
            LOSS: {"": np.ones(STEPS)},
            VAL_LOSS: {"cross_entropy": series(np.ones(len(share)), passes)},
            VAL_TRAIN_FRACTION: {"Net": series(share, passes)},
            VAL_MODE_TRAINING: {"Net": series([mode] * len(share), passes)},
            VAL_INPUT_FINGERPRINT: {"Net": series(given, passes)},
            INPUT_FINGERPRINT: {"Net": TRAINED},
        }
    )


def test_fires_where_eval_is_never_called() -> None:
    (finding,) = found(validation_in_train_mode, run_with([1.0] * 6))
    assert finding.confidence is Confidence.CERTAIN
    assert finding.onset == 9


def test_a_part_of_the_modules_is_but_a_hint() -> None:
    (finding,) = found(validation_in_train_mode, run_with([0.5] * 6))
    assert finding.confidence is Confidence.HINT


def test_modules_that_are_put_back_by_hand_are_but_a_hint() -> None:
    (finding,) = found(validation_in_train_mode, run_with([1.0] * 6, mode=0.0))
    assert finding.confidence is Confidence.HINT


@pytest.mark.parametrize("share", [[0.0] * 6, [1.0, 0, 0, 0, 0, 0], [0, 1.0, 0, 1.0, 0, 1.0]])
def test_eval_mode_is_clear(share: list[float]) -> None:
    (verdict,) = said(validation_in_train_mode, run_with(share))
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(
    ("run", "because"),
    [
        (run_with([1.0]), "1 of the 2"),
        (run_with([1.0] * 50, every=2), "most steps"),
        (run_with([1.0] * 4, fingerprints=list(TRAINED[[9, 19, 29, 39]])), "training batches"),
    ],
)
def test_other_losses_without_gradients_are_left_out(run: Run, because: str) -> None:
    (verdict,) = said(validation_in_train_mode, run)
    assert isinstance(verdict, NotExamined)
    assert because in verdict.because


def test_a_model_that_is_not_heard_may_be_another_one() -> None:
    passes = range(9, 69, 10)
    signals = {
        LOSS: {"": np.full(STEPS, np.nan)},
        VAL_LOSS: {"cross_entropy": series([np.nan] * 6, passes)},
        VAL_TRAIN_FRACTION: {"Net": series([1.0] * 6, passes)},
    }
    for heard in ({}, {VAL_INPUT_FINGERPRINT: {"average": series([7.0] * 6, passes)}}):
        (verdict,) = said(validation_in_train_mode, run_of({**signals, **heard}))
        assert isinstance(verdict, NotExamined)
