import numpy as np
import pytest

from holter.diagnosis.rules.overfitting import overfitting
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined
from holter.record.signals import LOSS, TARGET_ENTROPY, VAL_LOSS
from synthetic import found, run_of, said, series
from validations import STEPS, validated

PASSES = 20
TURN = 6
T = np.arange(PASSES)
FALLING = 2.3 * np.exp(-T / 4) + 0.01


def turning(rise: float, *, noise: float = 0.0, seed: int = 0) -> np.ndarray:
    """A validation loss that falls to 1 at TURN, then rises by `rise` in all."""
    after = np.clip(T - TURN, 0, None) / (PASSES - 1 - TURN)
    before = np.clip(TURN - T, 0, None) / TURN
    curve = 1 + 1.2 * before**2 + rise * after
    return curve * (1 + noise * np.random.default_rng(seed).normal(size=PASSES))


def test_fires_with_the_step_of_the_lowest_loss() -> None:
    (finding,) = found(overfitting, validated(FALLING, turning(0.8)))
    assert abs(finding.onset - (STEPS * (TURN + 1) - 1)) <= 2 * STEPS
    assert finding.confidence is Confidence.LIKELY
    assert [each.signal for each in finding.evidence] == [VAL_LOSS, LOSS]


@pytest.mark.parametrize("seed", range(10))
def test_noise_does_not_hide_it(seed: int) -> None:
    assert found(overfitting, validated(FALLING, turning(0.8, noise=0.03, seed=seed), seed=seed))


def test_many_passes_are_taken_together() -> None:
    t = np.linspace(0, 1, 400)
    noise = 1 + 0.1 * np.random.default_rng(0).normal(size=400)
    validation = (1 + 3 * np.clip(0.3 - t, 0, None) + 0.6 * np.clip(t - 0.3, 0, None)) * noise
    (finding,) = found(overfitting, validated(2 * np.exp(-4 * t), validation))
    assert 0.2 < finding.onset / (400 * STEPS) < 0.4


def test_accuracy_that_falls_agrees() -> None:
    accuracy = np.where(T <= TURN, 0.6 + 0.02 * T, 0.72 - 0.008 * (T - TURN))
    (finding,) = found(overfitting, validated(FALLING, turning(0.3), val_accuracy=accuracy))
    assert finding.confidence is Confidence.LIKELY


@pytest.mark.parametrize("accuracy", [np.where(T <= TURN, 0.6 + 0.02 * T, 0.72), 0.6 + 0.005 * T])
def test_accuracy_that_stays_or_rises_makes_it_a_matter_of_confidence(accuracy: np.ndarray) -> None:
    def verdict_with(fitted: float) -> object:
        training = np.minimum(0.3 + 0.1 * T, fitted)
        run = validated(FALLING + 0.1, turning(0.5), val_accuracy=accuracy, accuracy=training)
        (verdict,) = said(overfitting, run)
        return verdict

    note, finding = verdict_with(0.85), verdict_with(0.99)
    assert isinstance(note, Normal)
    assert note.exception == "no-damage"
    assert isinstance(finding, Finding)
    assert finding.confidence is Confidence.HINT


@pytest.mark.parametrize(
    ("training", "validation"),
    [
        (FALLING, 0.3 + 2 * np.exp(-T / 5)),  # still falls
        (FALLING, turning(0.05)),  # rises by less than matters
        (0.6 + 0.4 * FALLING, turning(0.1)),  # a little, and training is not far below
        (2.3 * np.exp(-np.clip(T, 0, TURN) / 4), turning(0.8)),  # training stands still
        (1 + 0.05 * T, turning(0.8)),  # training rises, too: it diverges
        (FALLING, np.where(T == 9, 3.0, 0.3 + 2 * np.exp(-T / 5))),  # one bad pass
        (FALLING, np.where(T == 9, 0.1, 1.0)),  # one lucky pass
        (FALLING, turning(0.8)[: TURN + 4]),  # too early to tell
    ],
)
def test_stays_silent(training: np.ndarray, validation: np.ndarray) -> None:
    run = validated(training[: len(validation)], validation)
    assert found(overfitting, run) == []


def test_a_rise_of_next_to_nothing_has_done_no_damage() -> None:
    (note,) = said(overfitting, validated(FALLING, 0.01 + 2.3 * np.exp(-T) + 0.0005 * T))
    assert isinstance(note, Normal)
    assert note.exception == "no-damage"


@pytest.mark.parametrize("seed", range(40))
def test_a_small_validation_set_that_scatters_is_no_overfitting(seed: int) -> None:
    rng = np.random.default_rng(seed)
    validation = (0.8 + np.exp(-T / 3)) * np.exp(0.25 * rng.normal(size=PASSES))
    assert found(overfitting, validated(FALLING, validation, seed=seed)) == []


@pytest.mark.parametrize("seed", range(40))
def test_a_random_walk_of_the_plateau_is_no_overfitting(seed: int) -> None:
    rng = np.random.default_rng(seed)
    validation = 0.8 + np.exp(-T / 3) + 0.02 * np.cumsum(rng.normal(size=PASSES)) / 4
    assert found(overfitting, validated(FALLING, validation, seed=seed)) == []


def test_what_never_was_learned_cannot_be_lost() -> None:
    (verdict,) = said(overfitting, validated(FALLING, 2.4 + 0.2 * T))
    assert isinstance(verdict, Clear)
    assert "constant" in verdict.because


def test_warm_restarts_raise_both_losses() -> None:
    cycle = np.where(T < 10, 2 * np.exp(-T / 3), 1 * np.exp(-(T - 10) / 9))
    assert found(overfitting, validated(cycle, cycle + 0.3)) == []


def test_nan_passes_are_left_out() -> None:
    validation = turning(0.8)
    validation[[3, 12]] = np.nan, np.inf
    assert found(overfitting, validated(FALLING, validation))


@pytest.mark.parametrize(
    ("losses", "validation", "because"),
    [
        ({"": [1.0] * 40}, {"cross_entropy": [1.0] * 3}, "3 of the 6"),
        ({"": [1.0, -1.0] * 20}, {"cross_entropy": [1.0] * 9}, "negative"),
        ({"G": [1.0] * 40, "D": [2.0] * 40}, {"cross_entropy": [1.0] * 9}, "compete"),
        ({"": [1.0] * 40}, {"cross_entropy": [1.0] * 9, "mse_loss": [1.0] * 9}, "several loss"),
        ({"": [np.nan] * 40}, {"cross_entropy": [1.0] * 9}, "finite"),
        ({"": [1.0] * 40}, {"cross_entropy": [np.nan] * 9}, "finite"),
    ],
)
def test_says_what_it_lacks(losses: dict, validation: dict, because: str) -> None:
    passes = {owner: series(each, range(0, 4 * len(each), 4)) for owner, each in validation.items()}
    (verdict,) = said(overfitting, run_of({LOSS: losses, VAL_LOSS: passes}))
    assert isinstance(verdict, NotExamined)
    assert because in verdict.because


def test_a_log_from_elsewhere_is_enough() -> None:
    run = validated(FALLING, turning(0.8))
    plain = run_of(
        {LOSS: {"": run[LOSS][""]}, VAL_LOSS: {"": run[VAL_LOSS]["cross_entropy"]}},
    )
    assert TARGET_ENTROPY not in plain
    assert found(overfitting, plain)
