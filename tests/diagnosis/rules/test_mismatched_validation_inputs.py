import numpy as np
import pytest

from holter.diagnosis.rule import NO_DAMAGE
from holter.diagnosis.rules.mismatched_validation_inputs import mismatched_validation_inputs
from holter.record import Run, Series
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import (
    DATASET_COLUMN_ORIGIN,
    DATASET_OWN_SCALE,
    INPUT_MEAN,
    INPUT_STD,
    VAL_INPUT_MEAN,
    VAL_INPUT_STD,
    Signal,
)
from synthetic import found, run_of, said, series
from validations import STEPS, validated

PASSES = 10


def inputs(
    mean: float, std: float, *, batch: float = 0.05, steps: int = 200, passes: int = PASSES
) -> dict[Signal, dict[str, Series]]:
    """Training inputs of mean 0 and deviation 1, `batch` being their scatter, and others."""
    rng = np.random.default_rng(0)
    after = [STEPS * (each + 1) - 1 for each in range(passes)]
    return {
        INPUT_MEAN: {"Net": series(batch * rng.normal(size=steps))},
        INPUT_STD: {"Net": series(np.abs(1 + batch * rng.normal(size=steps)))},
        VAL_INPUT_MEAN: {"Net": series(np.full(passes, mean), after)},
        VAL_INPUT_STD: {"Net": series(np.full(passes, std), after)},
    }


@pytest.mark.parametrize(("mean", "std"), [(120.0, 60.0), (0.0, 5.0), (0.0, 0.1), (3.0, 1.0)])
def test_fires_on_another_scale(mean: float, std: float) -> None:
    (finding,) = found(mismatched_validation_inputs, run_of(inputs(mean, std)))
    assert finding.confidence is Confidence.HINT
    assert finding.onset == STEPS - 1


def test_a_bad_validation_loss_makes_it_likely() -> None:
    t = np.arange(PASSES)
    training = 2.3 * np.exp(-t / 3)
    run = validated(training, 2 + 0.2 * t, more=inputs(120, 60))
    assert found(mismatched_validation_inputs, run)[0].confidence is Confidence.LIKELY


def test_inputs_on_which_the_model_is_as_good_do_no_damage() -> None:
    training = 2.3 * np.exp(-np.arange(PASSES) / 3)
    (note,) = said(
        mismatched_validation_inputs, validated(training, training, more=inputs(120, 60))
    )
    assert isinstance(note, Normal)
    assert note.exception == NO_DAMAGE


@pytest.mark.parametrize(("train", "valid", "reported"), [(1, 1, True), (1, 0, False)])
def test_data_sets_standardised_by_their_own_statistics(
    train: float, valid: float, reported: bool
) -> None:
    training = 2.3 * np.exp(-np.arange(PASSES) / 3)
    own = {DATASET_OWN_SCALE: {"train": series([train], [0]), "valid": series([valid], [0])}}
    for validation, worse in ((3 * training, True), (training, False)):
        run = validated(training, validation, more={**inputs(0, 1), **own})
        assert bool(found(mismatched_validation_inputs, run)) is (reported and worse)


@pytest.mark.parametrize(
    "run",
    [
        run_of(inputs(0, 1)),
        run_of(inputs(0.3, 1.4)),  # augmentation, padding
        run_of(inputs(0, 2.9)),
        run_of(inputs(1.4, 1)),
        run_of(inputs(3.0, 1, batch=0.8)),  # batches of one sample differ as much
    ],
)
def test_stays_silent(run: Run) -> None:
    (verdict,) = said(mismatched_validation_inputs, run)
    assert isinstance(verdict, Clear)


# Differences that the condition above leaves alone, as batches differ from one another.
MISSING = inputs(0.59, 0.27, batch=0.12)  # mean and deviation taken out in training alone
SHIFTED = inputs(1.2, 0.9)
GROWN = inputs(0.0, 2.4)


def bad(more: dict[Signal, dict[str, Series]]) -> Run:
    training = 2.3 * np.exp(-np.arange(PASSES) / 3)
    return validated(training, 2 + 0.2 * np.arange(PASSES), more=more)


@pytest.mark.parametrize(
    ("more", "confidence"),
    [
        (MISSING, Confidence.LIKELY),
        (inputs(0.7, 2.4), Confidence.LIKELY),
        (SHIFTED, Confidence.HINT),
        (GROWN, Confidence.HINT),
    ],
)
def test_a_moderate_difference_beside_a_bad_validation(
    more: dict[Signal, dict[str, Series]], confidence: Confidence
) -> None:
    (finding,) = found(mismatched_validation_inputs, bad(more))
    assert finding.confidence is confidence
    training = 2.3 * np.exp(-np.arange(PASSES) / 3)
    for run in (run_of(more), validated(training, 1.2 * training, more=more)):
        (verdict,) = said(mismatched_validation_inputs, run)
        assert isinstance(verdict, Clear)


def test_a_moderate_difference_beside_a_low_accuracy() -> None:
    training = 2.3 * np.exp(-np.arange(PASSES) / 6)
    for low, reported in ((0.4, True), (0.8, False)):
        run = validated(
            training,
            1.4 * training,
            accuracy=np.full(PASSES, 0.85),
            val_accuracy=np.full(PASSES, low),
            more=MISSING,
        )
        assert bool(found(mismatched_validation_inputs, run)) is reported


@pytest.mark.parametrize(
    "more",
    [
        inputs(0.02, 0.4),  # noise in training
        inputs(0.3, 1.4),  # mixup, padding, cropping
        inputs(0.9, 0.75, batch=0.4),  # a tiny validation set
        inputs(1.4, 2.4, batch=0.8),  # sparse inputs, small batches
        inputs(0.0, 1.9),
    ],
)
def test_what_training_explains_is_not_reported(more: dict[Signal, dict[str, Series]]) -> None:
    (verdict,) = said(mismatched_validation_inputs, bad(more))
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize("left", [0.25, 0.5])
def test_masked_or_erased_parts_are_not_reported(left: float) -> None:
    mean, std = 1.0, 0.4  # of whole inputs, such as pixels of 0 to 1
    masked = np.sqrt(left * (mean**2 + std**2) - (left * mean) ** 2)
    more = inputs(mean, std)
    steps = len(more[INPUT_MEAN]["Net"])
    rng = np.random.default_rng(1)
    more[INPUT_MEAN] = {"Net": series(left * mean + 0.02 * rng.normal(size=steps))}
    more[INPUT_STD] = {"Net": series(masked + 0.02 * rng.normal(size=steps))}
    (verdict,) = said(mismatched_validation_inputs, bad(more), max_ratio=9.0, max_shift=9.0)
    assert isinstance(verdict, Clear)


def test_says_what_it_lacks() -> None:
    constant = inputs(120, 60)
    constant[INPUT_STD] = {"Net": series(np.zeros(200))}
    broken = inputs(np.nan, np.nan)
    for signals in (constant, broken, inputs(120, 60, steps=5), inputs(120, 60, passes=1)):
        (verdict,) = said(mismatched_validation_inputs, run_of(signals))
        assert isinstance(verdict, NotExamined)


@pytest.mark.parametrize(("origin", "reported"), [([0, 1, 2], False), ([2, 1, 0], True)])
def test_columns_in_another_order(origin: list[float], reported: bool) -> None:
    run = run_of({**inputs(0, 1), DATASET_COLUMN_ORIGIN: {"valid": series(origin)}})
    findings = found(mismatched_validation_inputs, run)
    assert bool(findings) is reported
    assert all("0 is 2, 2 is 0" in finding.summary for finding in findings)
