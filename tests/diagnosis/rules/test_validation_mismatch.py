import numpy as np
import pytest

from holter.diagnosis.rules.validation_mismatch import validation_mismatch
from holter.record import Run
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined
from holter.record.signals import (
    INPUT_MEAN,
    INPUT_STD,
    LOSS,
    TARGET_STD,
    VAL_INPUT_MEAN,
    VAL_INPUT_STD,
    VAL_LOSS,
    VAL_R2,
)
from synthetic import found, run_of, said, series
from validations import STEPS, validated

T = np.arange(10)
FALLING = 2.3 * np.exp(-T / 3)
RISING = 2.4 + 0.2 * T
FITTED = 0.3 + 0.06 * T
AT_CHANCE = np.full(10, 0.11)


def test_fires_where_validation_rises_from_the_first_pass_on() -> None:
    (finding,) = found(validation_mismatch, validated(FALLING, RISING))
    assert finding.confidence is Confidence.HINT
    assert finding.onset == STEPS - 1


def test_accuracy_at_chance_makes_it_likely() -> None:
    run = validated(FALLING, RISING, accuracy=FITTED, val_accuracy=AT_CHANCE)
    assert [each.confidence for each in found(validation_mismatch, run)] == [Confidence.LIKELY]


def test_other_inputs_make_it_likely() -> None:
    rng = np.random.default_rng(0)
    inputs = {
        INPUT_MEAN: {"Net": series(0.01 * rng.normal(size=100))},
        INPUT_STD: {"Net": series(1 + 0.01 * rng.normal(size=100))},
        VAL_INPUT_MEAN: {"Net": series(np.full(10, 100.0))},
        VAL_INPUT_STD: {"Net": series(np.full(10, 60.0))},
    }
    run = validated(FALLING, np.full(10, 2.5), more=inputs)
    assert [each.confidence for each in found(validation_mismatch, run)] == [Confidence.LIKELY]


@pytest.mark.parametrize(
    "validation",
    [
        0.3 + 2 * np.exp(-T / 3),  # learns
        1.5 + 0.2 * T,  # overfitted after the first pass, but better than nothing then
        20 * np.exp(-T / 2) + 2.4,  # bad, and getting better
    ],
)
def test_stays_silent(validation: np.ndarray) -> None:
    run = validated(FALLING, validation, accuracy=FITTED)
    (verdict,) = said(validation_mismatch, run)
    assert isinstance(verdict, Clear)


def test_an_accuracy_far_below_that_of_training_is_a_hint() -> None:
    run = validated(FALLING, RISING, accuracy=FITTED, val_accuracy=np.full(10, 0.27))
    (verdict,) = said(validation_mismatch, run)
    assert isinstance(verdict, Finding)
    assert verdict.confidence is Confidence.HINT


def test_a_badly_calibrated_model_that_is_often_right_has_no_damage() -> None:
    run = validated(FALLING, RISING, accuracy=FITTED, val_accuracy=np.full(10, 0.4))
    (note,) = said(validation_mismatch, run)
    assert isinstance(note, Normal)
    assert note.exception == "no-damage"


def test_a_model_that_learned_nothing_at_all_is_another_matter() -> None:
    (verdict,) = said(validation_mismatch, validated(np.full(10, 2.3), np.full(10, 2.31)))
    assert isinstance(verdict, Clear)
    assert "either" in verdict.because


def test_weighted_classes_have_another_level() -> None:
    # rare positives weighed up: both losses lie far over the entropy of the plain labels
    run = validated(6 * np.exp(-T / 3) + 2.4, 6 * np.exp(-T / 30) + 3)
    assert found(validation_mismatch, run) == []


def test_what_gets_worse_than_a_constant_prediction_needs_less_of_a_gap() -> None:
    training = np.linspace(2.3, 2.1, 10)
    worse = validated(training, np.linspace(2.31, 2.55, 10), noise=0.01)
    assert [each.confidence for each in found(validation_mismatch, worse)] == [Confidence.HINT]
    assert found(validation_mismatch, validated(training, np.full(10, 2.33), noise=0.01)) == []


def regression(training: np.ndarray, validation: np.ndarray) -> Run:
    steps = np.repeat(training, STEPS)
    after = [STEPS * (each + 1) - 1 for each in range(len(validation))]
    return run_of(
        {
            LOSS: {"": steps},
            VAL_LOSS: {"": series(validation, after)},
            TARGET_STD: {"mse_loss": np.full(len(steps), 2.0)},
        }
    )


def test_squared_errors_are_held_against_the_variance() -> None:
    assert found(validation_mismatch, regression(4 * np.exp(-T / 3), np.full(10, 4.2)))
    assert found(validation_mismatch, regression(4 * np.exp(-T / 3), np.full(10, 2.0))) == []


def test_a_sum_over_the_batch_is_on_another_scale() -> None:
    (verdict,) = said(validation_mismatch, regression(0.1 * np.ones(10), np.full(10, 300.0)))
    assert isinstance(verdict, NotExamined)
    assert "scale" in verdict.because


@pytest.mark.parametrize(("explained", "fires"), [(-4.0, True), (0.3, False)])
def test_validation_targets_of_another_scale(*, explained: float, fires: bool) -> None:
    """What explains less of the validation targets than their mean is worse at any scale."""
    run = regression(4 * np.exp(-T / 3), np.linspace(110.0, 100.0, 10))
    owners = run[VAL_LOSS]
    (owner,) = owners
    more = {VAL_R2: {owner: series(np.full(10, explained), owners[owner].steps)}}
    tables = {signal: dict(run[signal]) for signal in (LOSS, VAL_LOSS, TARGET_STD)}
    said_of = said(validation_mismatch, run_of({**tables, **more}))
    assert [isinstance(each, Finding) for each in said_of] == [fires]


def test_boundary() -> None:
    learned = np.full(10, 0.78 * 2.3)
    assert found(validation_mismatch, validated(learned, np.full(10, 2.3), noise=0))
    assert not found(validation_mismatch, validated(learned * 1.05, np.full(10, 2.3), noise=0))
    assert not found(validation_mismatch, validated(learned, np.full(10, 0.9 * 2.3), noise=0))


def test_nan_and_short() -> None:
    validation = RISING.copy()
    validation[4] = np.nan
    assert found(validation_mismatch, validated(FALLING, validation))
    (verdict,) = said(validation_mismatch, validated(FALLING[:2], RISING[:2]))
    assert isinstance(verdict, NotExamined)
