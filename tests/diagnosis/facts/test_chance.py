import numpy as np
import pytest

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import Baseline
from holter.diagnosis.facts.chance import Chance, Standing
from holter.diagnosis.facts.outcome import OutcomeState
from holter.record import Run
from holter.record.signals import (
    ACCURACY,
    LOSS,
    LOSS_ROOT_SHARE,
    OUTPUT_SPREAD,
    TARGET_CLASSES,
    TARGET_ENTROPY,
    TARGET_LARGEST_CLASS_FRACTION,
    TARGET_MAX,
    TARGET_MIN,
    TARGET_STD,
    VAL_ACCURACY,
    VAL_LOSS,
    VAL_R2,
)
from synthetic import run_of, series

CONSTANT = float(np.log(10))
STEPS = 900
AT = np.arange(STEPS)


def noisy(level: np.ndarray | float, noise: float = 0.05, seed: int = 0) -> np.ndarray:
    return level + noise * np.random.default_rng(seed).normal(size=STEPS)


def run(
    loss: np.ndarray,
    *,
    spread: float = 0.15,
    accuracy: float = 0.1,
    prior: float = 0.11,
    validation: list[float] | None = None,
    val_accuracy: float = 0.1,
) -> Run:
    owner = "cross_entropy"
    signals = {
        LOSS: {"": loss},
        LOSS_ROOT_SHARE: {"": np.ones(STEPS)},
        TARGET_ENTROPY: {owner: np.full(STEPS, CONSTANT)},
        OUTPUT_SPREAD: {owner: np.full(STEPS, spread)},
        ACCURACY: {owner: noisy(accuracy, 0.03, 1)},
        TARGET_LARGEST_CLASS_FRACTION: {owner: np.full(STEPS, prior)},
        TARGET_CLASSES: {owner: np.full(STEPS, 10.0)},
    }
    if validation is not None:
        steps = np.linspace(STEPS // len(validation), STEPS - 1, len(validation)).astype(int)
        signals[VAL_LOSS] = {owner: series(validation, steps)}
        signals[VAL_ACCURACY] = {owner: series([val_accuracy] * len(validation), steps)}
    return run_of(signals)


def chance(run: Run) -> Chance:
    measured = Facts(run).chance
    assert isinstance(measured, Chance)
    return measured


MEMORISED = noisy(CONSTANT * np.where(AT < 300, 1.01, np.where(AT < 600, 0.99, 0.97)))


def test_memorised_samples_are_no_learning_if_validation_is_at_chance() -> None:
    made = run(MEMORISED, accuracy=0.15, validation=[2.305, 2.31, 2.33])
    assert chance(made).standing is Standing.AT_CHANCE
    assert chance(made).validation is not None
    outcome = Facts(made).outcome
    assert outcome is not None
    assert outcome.state is OutcomeState.LEARNED_NOTHING


@pytest.mark.parametrize(
    "made",
    [
        run(MEMORISED, accuracy=0.15),  # nothing is known of validation
        run(MEMORISED, accuracy=0.15, validation=[2.31, 2.29, 2.27]),
        run(MEMORISED, accuracy=0.15, validation=[2.31, 2.32, 2.33], val_accuracy=0.3),
        # validation may have other class frequencies
        run(MEMORISED, accuracy=0.6, prior=0.4, validation=[2.31, 2.32, 2.33], val_accuracy=0.4),
        run(noisy(1.5), accuracy=0.4, validation=[2.4, 2.6, 2.8]),  # validation-mismatch says it
    ],
)
def test_what_validation_does_not_deny_is_learning(made: Run) -> None:
    assert chance(made).standing is Standing.BETTER


@pytest.mark.parametrize("validation", [None, [2.303, 2.304, 2.306]])
@pytest.mark.parametrize("spread", [0.0095, 0.15, 1.0])
def test_predictions_that_vary_are_no_learning(
    spread: float, validation: list[float] | None
) -> None:
    made = run(noisy(CONSTANT), spread=spread, validation=validation)
    assert chance(made).standing is Standing.AT_CHANCE


def test_a_transient_in_the_first_steps_is_no_learning() -> None:
    loss = noisy(CONSTANT + 1.5 * np.exp(-AT / 3))
    loss[5:8] = 1.9
    made = run(loss)
    assert chance(made).standing is Standing.AT_CHANCE
    assert chance(made).onset < 100


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    "level",
    [
        2.36 - 0.06 * AT / STEPS,  # from above
        2.36 - 0.12 * AT / STEPS,  # through the level
        2.33 - 0.1 * (AT / STEPS) ** 2,
    ],
)
def test_a_slow_trend_is_never_called_failed(level: np.ndarray, seed: int) -> None:
    made = run(noisy(level, 0.02, seed), validation=[2.35, 2.33, 2.31])
    assert chance(made).standing in (Standing.FALLING, Standing.BETTER)
    outcome = Facts(made).outcome
    assert outcome is not None
    assert not outcome.bad


def test_a_loss_that_comes_back_from_an_explosion_is_not_on_its_way() -> None:
    loss = noisy(2.5 + 500 * np.exp(-AT / 300))
    loss[0] = CONSTANT
    assert chance(run(loss)).standing is Standing.AT_CHANCE


def test_a_loss_of_other_orders_of_magnitude_is_not_on_its_way() -> None:
    falling = CONSTANT * 10 ** (9 - 3 * AT / STEPS)
    assert chance(run(falling)).standing is Standing.AT_CHANCE
    assert chance(run(falling / 1e6)).standing is Standing.FALLING


def test_a_squared_error_that_falls_in_validation_is_learning() -> None:
    """Validation targets may vary more than those of training."""

    def made(validation: list[float]) -> Run:
        steps = np.array([299, 599, 899])
        return run_of(
            {
                LOSS: {"": noisy(3.92)},
                LOSS_ROOT_SHARE: {"": np.ones(STEPS)},
                TARGET_STD: {"mse_loss": np.full(STEPS, 2.0)},
                OUTPUT_SPREAD: {"mse_loss": np.full(STEPS, 0.5)},
                VAL_LOSS: {"mse_loss": series(validation, steps)},
            }
        )

    assert chance(made([9.0, 8.0, 7.0])).validation is None
    assert chance(made([3.7, 3.65, 3.7])).validation is None
    assert chance(made([4.1, 4.1, 4.2])).standing is Standing.AT_CHANCE


@pytest.mark.parametrize(
    ("validation", "at_chance"),
    [
        (np.linspace(2.22, 2.32, 10), True),  # close to it at best, and back
        (np.linspace(2.22, 2.22, 10), False),
        (np.linspace(2.1, 2.32, 10), False),  # it had learned: overfitting
        (np.linspace(2.2, 2.24, 10), False),  # still better
    ],
)
def test_a_validation_that_rose_back_to_the_constant_prediction(
    validation: np.ndarray, at_chance: bool
) -> None:
    made = run(MEMORISED, accuracy=0.15, validation=validation.tolist())
    assert (chance(made).standing is Standing.AT_CHANCE) is at_chance


def test_a_validation_is_judged_beside_the_variance_of_its_own_targets() -> None:
    """A validation set that is easier than the training set hides that nothing was learned."""
    steps, losses = np.arange(149, STEPS, 150), np.array([0.905, 0.906, 0.91, 0.915, 0.92, 0.925])
    signals = {
        LOSS: {"": noisy(np.linspace(1.0, 0.87, STEPS))},
        LOSS_ROOT_SHARE: {"": np.ones(STEPS)},
        TARGET_STD: {"mse_loss": np.ones(STEPS)},
        VAL_LOSS: {"mse_loss": series(losses, steps)},
    }
    assert chance(run_of(signals)).validation is None  # below the 1.0 of the training targets
    own = {VAL_R2: {"mse_loss": series(1 - losses / 0.905, steps)}}
    measured = chance(run_of({**signals, **own}))
    assert measured.validation is not None
    assert measured.standing is Standing.AT_CHANCE


def test_targets_that_differ_by_rounding_alone_do_not_vary() -> None:
    def baseline(spread: float) -> object:
        targets = {TARGET_MIN: -0.8, TARGET_MAX: 0.5, TARGET_STD: spread}
        signals = {signal: {"mse_loss": np.full(STEPS, at)} for signal, at in targets.items()}
        return Facts(run_of({LOSS: {"": np.full(STEPS, 0.03)}, **signals})).baseline

    assert isinstance(baseline(3e-8), str)  # the centre of all samples
    assert isinstance(baseline(1e-3), Baseline)


ABOVE = noisy(CONSTANT * np.where(AT < 5, 1.1, 1.01), 0.02)
NOISY_LABELS = noisy(CONSTANT * np.where(AT < 20, 1.0, 0.95), 0.02)


@pytest.mark.parametrize(
    ("made", "state"),
    [
        (run(NOISY_LABELS, accuracy=0.15, spread=0.9), OutcomeState.STALLED),
        (run(NOISY_LABELS, accuracy=0.4, spread=0.9), OutcomeState.LEARNED),
        (run(ABOVE, accuracy=0.25, spread=0.9), OutcomeState.STALLED),
        (run(ABOVE, accuracy=0.5, spread=0.9), OutcomeState.LEARNED),  # targets are smoothed
        (
            run(NOISY_LABELS, accuracy=0.15, spread=0.9, validation=[0.9, 0.6, 0.5, 0.5, 0.5]),
            OutcomeState.LEARNED,  # mixed samples in training, whole ones in validation
        ),
    ],
)
def test_a_loss_that_noisy_or_mixed_labels_keep_high_has_not_stalled(
    made: Run, state: OutcomeState
) -> None:
    assert Facts(made).run_outcome.state is state
