import numpy as np
import pytest

from holter.diagnosis.rules.validation_better_than_training import validation_better_than_training
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import LOSS_ROOT_SHARE, MODE_EVAL_FRACTION
from synthetic import found, said, series
from validations import ENTROPY, validated

T = np.arange(12)
STUCK = np.full(12, 0.9 * ENTROPY)
LEARNED = 0.4 + np.exp(-T)


def test_fires_where_training_stands_at_a_constant_prediction() -> None:
    (finding,) = found(validation_better_than_training, validated(STUCK, LEARNED))
    assert finding.confidence is Confidence.HINT


@pytest.mark.parametrize(("fitted", "count"), [(0.12, 1), (0.2, 1), (0.5, 0)])
def test_fires_where_training_is_right_by_chance_only(fitted: float, count: int) -> None:
    run = validated(
        STUCK,
        0.99 * STUCK,
        accuracy=np.full(12, fitted),
        val_accuracy=np.linspace(0.3, 0.6, 12),
    )
    assert len(found(validation_better_than_training, run)) == count


@pytest.mark.parametrize(
    ("training", "validation"),
    [
        (0.5 + 2 * np.exp(-T / 3), 0.4 + 1.8 * np.exp(-T / 3)),  # dropout, or the epoch's mean
        (0.6 * STUCK, LEARNED),  # strong regularisation that learns
        (2.3 - 0.05 * T, 0.3 * (2.3 - 0.05 * T)),  # still falls
        (STUCK, 0.6 * STUCK),  # a gap that is not extreme
    ],
)
def test_a_gap_is_normal(training: np.ndarray, validation: np.ndarray) -> None:
    verdicts = said(validation_better_than_training, validated(training, validation))
    assert [type(each) for each in verdicts] == [Normal, Clear]


def test_names_dropout_where_there_is_some() -> None:
    modes = {MODE_EVAL_FRACTION: {"Net": series(np.zeros(240))}}
    run = validated(0.5 + np.exp(-T / 3), 0.3 + np.exp(-T / 3), more=modes)
    assert "dropout" in said(validation_better_than_training, run)[0].summary


def test_stays_silent_where_validation_is_worse_or_the_same() -> None:
    for validation in (STUCK * 1.2, STUCK * 0.999):
        (verdict,) = said(validation_better_than_training, validated(STUCK, validation))
        assert isinstance(verdict, Clear)


def test_says_what_it_lacks() -> None:
    further_terms = {LOSS_ROOT_SHARE: {"": series(np.tile([1.5, 3.0, 9.0], 80))}}
    for run in (
        validated(STUCK, LEARNED, more=further_terms),
        validated(STUCK[:3], LEARNED[:3]),
        validated(np.full(12, np.nan), LEARNED),
    ):
        (verdict,) = said(validation_better_than_training, run)
        assert isinstance(verdict, NotExamined)


def test_a_sum_is_compared_as_a_mean() -> None:
    summed = {LOSS_ROOT_SHARE: {"": series(np.full(240, 64.0))}}
    (mean,) = found(validation_better_than_training, validated(STUCK, LEARNED))
    (of_sum,) = found(validation_better_than_training, validated(64 * STUCK, LEARNED, more=summed))
    assert of_sum.summary == mean.summary
