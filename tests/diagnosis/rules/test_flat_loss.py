from collections.abc import Callable

import numpy as np
import pytest

from holter.diagnosis.rules.flat_loss import flat_loss
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import (
    ACCURACY,
    LABEL_FIT,
    LABEL_HELD_OUT,
    LOSS,
    LOSS_ROOT_SHARE,
    LR,
    OUTPUT_SPREAD,
    TARGET_CLASSES,
    TARGET_ENTROPY,
    TARGET_LARGEST_CLASS_FRACTION,
    UPDATE_RATIO,
    VAL_LOSS,
)
from synthetic import found, run_of, said, series

SEEDS = range(40)
Curve = Callable[[np.random.Generator], np.ndarray]


def run_with(loss: np.ndarray) -> Run:
    return run_of({LOSS: {"": loss}})


@pytest.mark.parametrize("noise", [0.001, 0.003, 0.01, 0.02])
@pytest.mark.parametrize("scale", [1e-3, 2.3, 1e4, -5.0])
def test_fires_on_a_flat_loss_in_spite_of_noise(noise: float, scale: float) -> None:
    fired = 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        fired += len(found(flat_loss, run_with(scale * (1 + noise * rng.normal(size=300)))))
    assert fired >= len(SEEDS) * (0.85 if noise == 0.02 else 0.95)


def test_fires_on_flat_but_heavy_tailed_losses() -> None:
    rng = np.random.default_rng(0)
    (finding,) = found(flat_loss, run_with(2.3 + 0.01 * rng.standard_t(3, size=400)))
    assert finding.confidence is Confidence.HINT


def decay(rng: np.random.Generator, *, drop: float, steps: int, noise: float) -> np.ndarray:
    t = np.arange(steps)
    return 2.3 * (1 - drop * (1 - np.exp(-3 * t / steps))) * (1 + noise * rng.normal(size=steps))


def power_law(rng: np.random.Generator) -> np.ndarray:
    t = np.arange(500)
    return (2 + 4 * (t + 1.0) ** -0.3) * (1 + 0.01 * rng.normal(size=500))


def continued_power_law(rng: np.random.Generator) -> np.ndarray:
    t = np.arange(3000)
    return 2.8 * (1 + t / 3000) ** -0.05 * (1 + 0.03 * rng.normal(size=3000))


def epoch_staircase(rng: np.random.Generator) -> np.ndarray:
    return np.repeat([2.3, 2.2, 2.1, 2.0], 75) + 0.01 * rng.normal(size=300)


def plateau_after_a_small_drop(rng: np.random.Generator) -> np.ndarray:
    t = np.arange(300)
    return 2.30 + 0.08 * np.exp(-t / 4) + 0.004 * rng.normal(size=300)


def plateau_then_drop(rng: np.random.Generator) -> np.ndarray:
    t = np.arange(300)
    return 2.3 - 1.5 / (1 + np.exp(-(t - 270) / 6)) + 0.01 * rng.normal(size=300)


def around_zero(rng: np.random.Generator) -> np.ndarray:
    return 0.01 * rng.normal(size=500)


def fine_tuning(rng: np.random.Generator) -> np.ndarray:
    return 0.4 * np.linspace(1, 0.95, 200) * (1 + 0.02 * rng.normal(size=200))


def smoothing_floor(rng: np.random.Generator) -> np.ndarray:
    t = np.arange(400)
    return 0.5 + 1.8 * np.exp(-t / 6) + 0.003 * rng.normal(size=400)


def heavy_tails(rng: np.random.Generator) -> np.ndarray:
    return np.linspace(2.3, 2.1, 300) * np.exp(0.03 * rng.standard_t(2, size=300))


def summed(rng: np.random.Generator) -> np.ndarray:
    return 1e4 * np.linspace(1, 0.97, 300) * (1 + 0.01 * rng.normal(size=300))


def fell_and_came_back(rng: np.random.Generator) -> np.ndarray:
    t = np.arange(300)
    return 2.3 - 0.3 * np.sin(np.pi * t / 300) ** 2 + 0.01 * rng.normal(size=300)


def a_minority_of_batches_learns(rng: np.random.Generator) -> np.ndarray:
    hard = rng.random(600) < 0.4
    easy = 0.7 + 0.002 * rng.normal(size=600)
    return np.where(hard, np.linspace(5, 1, 600) + 0.1 * rng.normal(size=600), easy)


def diverging(rng: np.random.Generator) -> np.ndarray:
    return np.linspace(2.3, 2.5, 300) + 0.005 * rng.normal(size=300)


def mostly_exact(rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(300) < 0.7, 1.0, rng.random(300))


@pytest.mark.parametrize(
    "curve",
    [
        lambda rng: decay(rng, drop=0.05, steps=200, noise=0.05),
        lambda rng: decay(rng, drop=0.05, steps=200, noise=0.01),
        lambda rng: decay(rng, drop=0.03, steps=200, noise=0.02),
        lambda rng: decay(rng, drop=0.005, steps=200, noise=0.0),
        power_law,
        continued_power_law,
        epoch_staircase,
        plateau_after_a_small_drop,
        plateau_then_drop,
        around_zero,
        fine_tuning,
        smoothing_floor,
        heavy_tails,
        summed,
        fell_and_came_back,
        a_minority_of_batches_learns,
        diverging,
        mostly_exact,
        lambda rng: np.abs(1e-9 * rng.normal(size=300)),
    ],
)
def test_silent_on_curves_that_are_not_flat(curve: Curve) -> None:
    for seed in SEEDS:
        assert not found(flat_loss, run_with(curve(np.random.default_rng(seed)))), seed


def test_silent_on_a_loss_that_falls_while_the_learning_rate_warms_up() -> None:
    t = np.arange(400)
    one_cycle = np.where(t < 120, 0.04 + 0.96 * t / 120, np.cos((t - 120) / 280 * np.pi / 2))
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        loss = 0.5 + np.exp(-t / 20) + 0.005 * rng.normal(size=400)
        assert not found(flat_loss, run_of({LOSS: {"": loss}, LR: {"group 0": one_cycle}}))


def test_waits_for_the_warm_up() -> None:
    rising = np.linspace(0.001, 1, 200)
    (verdict,) = said(flat_loss, run_of({LOSS: {"": np.ones(200)}, LR: {"group 0": rising}}))
    assert isinstance(verdict, NotExamined)
    assert "warming up" in verdict.because


def test_judges_what_follows_the_warm_up() -> None:
    rate = np.minimum(1, np.arange(1, 301) / 100)
    (finding,) = found(flat_loss, run_of({LOSS: {"": np.ones(300)}, LR: {"group 0": rate}}))
    assert finding.onset > 50


def test_a_learning_rate_of_zero_is_no_warm_up() -> None:
    run = run_of({LOSS: {"": np.ones(60)}, LR: {"group 0": np.zeros(60)}})
    assert found(flat_loss, run)


def test_a_second_signal_makes_it_likely() -> None:
    rng = np.random.default_rng(0)
    loss = 2.3 + 0.002 * rng.normal(size=200)
    for ratio, confidence in ((1e-8, Confidence.LIKELY), (1e-3, Confidence.HINT)):
        updates = {"fc.weight": [ratio] * 200, "fc.bias": [ratio] * 200}
        (finding,) = found(flat_loss, run_of({LOSS: {"": loss}, UPDATE_RATIO: updates}))
        assert finding.confidence is confidence
    (finding,) = found(flat_loss, run_with(np.full(200, 0.6931)))
    assert finding.confidence is Confidence.LIKELY


@pytest.mark.parametrize(
    ("losses", "because"),
    [
        ({"": [1.0] * 49}, "49 of the 50"),
        ({"": [np.nan] * 300}, "0 of the 50"),
        ({"": []}, "no loss"),
        ({"": np.random.default_rng(0).normal(2.3, 0.5, 100)}, "too noisy"),
        ({"": np.random.default_rng(0).normal(0, 1, 100)}, "sign"),
        ({"generator": [1.0] * 200, "discriminator": [2.0] * 200}, "compete"),
    ],
)
def test_says_what_it_lacks(losses: dict[str, list[float]], because: str) -> None:
    (verdict,) = said(flat_loss, run_of({LOSS: losses}))
    assert isinstance(verdict, NotExamined)
    assert because in verdict.because


def test_wild_and_non_finite_losses_do_not_blind_it() -> None:
    loss = 2.3 + 0.002 * np.random.default_rng(0).normal(size=300)
    loss[[40, 200]] = np.inf, 1e6
    assert found(flat_loss, run_with(loss))


def test_a_transient_in_the_first_steps_is_no_learning() -> None:
    loss = 2.3 + 0.002 * np.random.default_rng(0).normal(size=300)
    loss[:2] = 9.0, 5.0
    assert found(flat_loss, run_with(loss))


def test_a_loss_of_zero_from_the_first_step_is_flat() -> None:
    (finding,) = found(flat_loss, run_with(np.zeros(100)))
    assert finding.confidence is Confidence.LIKELY


@pytest.mark.parametrize(("entropy", "harmless"), [(2.3, True), (0.7, False)])
def test_a_flat_loss_far_below_the_best_constant_prediction_is_harmless(
    entropy: float, harmless: bool
) -> None:
    loss = 0.5 + 0.001 * np.random.default_rng(0).normal(size=200)
    run = run_of(
        {
            LOSS: {"": loss},
            TARGET_ENTROPY: {"cross_entropy": np.full(200, entropy)},
            OUTPUT_SPREAD: {"cross_entropy": np.ones(200)},
        }
    )
    (verdict,) = said(flat_loss, run)
    assert isinstance(verdict, Normal) is harmless
    if isinstance(verdict, Normal):
        assert verdict.exception == "no-damage"


def test_a_setup_that_learns_in_the_lab_is_evidence_and_no_excuse() -> None:
    rng = np.random.default_rng(0)
    trials = {
        name: level + 0.01 * rng.normal(size=20) for name, level in (("true", 1), ("shuffled 1", 2))
    }
    run = run_of(
        {
            LOSS: {"": 2.3 + 0.002 * rng.normal(size=300)},
            LABEL_FIT: trials,
            LABEL_HELD_OUT: trials,
        }
    )
    (finding,) = found(flat_loss, run)
    assert LABEL_HELD_OUT in {evidence.signal for evidence in finding.evidence}
    assert "loop" in finding.fix


def test_clear_names_the_fall() -> None:
    (verdict,) = said(flat_loss, run_with(np.linspace(2, 1, 100)))
    assert isinstance(verdict, Clear)
    assert "falls by" in verdict.because


@pytest.mark.parametrize(
    ("validation", "accuracy", "fires"),
    [
        (0.678, 0.59, False),  # noisy labels leave no more to learn
        (0.693, 0.59, True),
        (0.678, 0.51, True),
    ],
)
def test_a_small_gain_that_carries_over_is_all_that_noisy_labels_allow(
    validation: float, accuracy: float, fires: bool
) -> None:
    owner, steps = "cross_entropy", 300
    rng = np.random.default_rng(0)
    run = run_of(
        {
            LOSS: {"": 0.677 + 0.001 * rng.normal(size=steps)},
            LOSS_ROOT_SHARE: {"": np.ones(steps)},
            TARGET_ENTROPY: {owner: np.full(steps, np.log(2))},
            TARGET_LARGEST_CLASS_FRACTION: {owner: np.full(steps, 0.5)},
            TARGET_CLASSES: {owner: np.full(steps, 2.0)},
            ACCURACY: {owner: np.full(steps, accuracy)},
            VAL_LOSS: {owner: series([validation] * 5, range(50, 300, 50))},
        }
    )
    assert bool(found(flat_loss, run)) == fires
