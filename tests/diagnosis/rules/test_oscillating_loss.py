from collections.abc import Callable

import numpy as np
import pytest

from holter.diagnosis.rules.oscillating_loss import oscillating_loss
from holter.record import Event, Run
from holter.record.events import PassBegan
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined
from holter.record.signals import (
    DATA_BATCH_SIZE,
    LOSS,
    LR,
    OUTPUT_SPREAD,
    TARGET_COUNT,
    TARGET_ENTROPY,
    UPDATE_RATIO,
)
from synthetic import found, run_of, said

SEEDS = range(20)
T = np.arange(300)


def run_with(
    loss: np.ndarray,
    *,
    batch: int | None = 400,
    update: float | None = 0.03,
    rate: np.ndarray | None = None,
    epoch: int | None = None,
) -> Run:
    each = np.ones(len(loss))
    signals = {LOSS: {"": loss}, LR: {"group 0": 0.1 * each if rate is None else rate}}
    if batch is not None:
        signals[TARGET_COUNT] = {"cross_entropy": batch * each}
        signals[OUTPUT_SPREAD] = {"cross_entropy": each}
        signals[DATA_BATCH_SIZE] = {"loader 0": batch * each}
    if update is not None:
        signals[UPDATE_RATIO] = {"fc.weight": update * each}
    starts = range(0, len(loss), epoch) if epoch else ()
    events = [Event(at, 0.0, PassBegan("loader 0")) for at in starts]
    return run_of(signals, events=events)


def turns(rng: np.random.Generator) -> np.ndarray:
    return 2 + 0.6 * (-1.0) ** T * (1 + 0.2 * rng.normal(size=300)) + 0.1 * rng.normal(size=300)


def swings(rng: np.random.Generator) -> np.ndarray:
    return 2 + np.sin(2 * np.pi * T / 20) + 0.1 * rng.normal(size=300)


@pytest.mark.parametrize("curve", [turns, swings])
def test_fires_with_large_updates(curve: Callable[[np.random.Generator], np.ndarray]) -> None:
    for seed in SEEDS:
        (finding,) = found(oscillating_loss, run_with(curve(np.random.default_rng(seed))))
        assert finding.confidence is Confidence.LIKELY
        assert {evidence.signal for evidence in finding.evidence} == {LOSS, UPDATE_RATIO}


@pytest.mark.parametrize("curve", [turns, swings])
def test_a_curve_alone_is_a_hint(curve: Callable[[np.random.Generator], np.ndarray]) -> None:
    run = run_with(curve(np.random.default_rng(0)), batch=None, update=None)
    (finding,) = found(oscillating_loss, run)
    assert finding.confidence is Confidence.HINT


def test_without_the_size_of_batches_it_is_a_hint() -> None:
    (finding,) = found(oscillating_loss, run_with(turns(np.random.default_rng(0)), batch=None))
    assert finding.confidence is Confidence.HINT


def test_a_noise_floor_is_a_hint_at_most() -> None:
    rng = np.random.default_rng(0)
    loss = 2 * np.exp(0.4 * rng.normal(size=300))
    (finding,) = found(oscillating_loss, run_with(loss, batch=2000))
    assert finding.confidence is Confidence.HINT


def correlated(rng: np.random.Generator) -> np.ndarray:
    noise = np.zeros(300)
    for at in range(1, 300):
        noise[at] = 0.9 * noise[at - 1] + rng.normal()
    return 2 * np.exp(0.05 * noise)


@pytest.mark.parametrize(
    ("curve", "more"),
    [
        (lambda rng: 2 * np.exp(0.5 * rng.normal(size=300)), {"batch": 4}),  # small batches
        (lambda rng: 2 * np.exp(0.5 * rng.normal(size=300)), {"batch": None}),
        (lambda rng: 2 + 0.5 * rng.standard_t(2, size=300) ** 2, {"batch": 8}),
        (correlated, {"batch": None, "update": None}),
        (lambda rng: 2 + 0.02 * (-1.0) ** T, {}),  # the edge of stability
        (lambda rng: turns(rng) * np.exp(-T / 200), {}),  # still falls
    ],
)
def test_clear_on_noise_and_progress(
    curve: Callable[[np.random.Generator], np.ndarray], more: dict[str, object]
) -> None:
    for seed in SEEDS:
        (verdict,) = said(oscillating_loss, run_with(curve(np.random.default_rng(seed)), **more))
        assert isinstance(verdict, Clear), seed
        assert verdict.because


def sorted_data(rng: np.random.Generator) -> np.ndarray:
    return 2 + (T % 30) / 30 + 0.05 * rng.normal(size=300)


def cycles(rng: np.random.Generator) -> np.ndarray:
    return 2 + np.sin(2 * np.pi * T / 25) + 0.1 * rng.normal(size=300)


CYCLING = 0.1 + 0.09 * np.sin(2 * np.pi * T / 25)


@pytest.mark.parametrize(
    ("curve", "more", "exception"),
    [
        (lambda rng: 0.05 * turns(rng) + 4 * np.exp(-T / 10), {}, "no-damage"),
        (turns, {"update": 1e-4}, "small-updates"),
        (turns, {"batch": 80, "epoch": 2}, "epoch-order"),  # one high means the other low
        (swings, {"epoch": 20}, "epoch-order"),
        (cycles, {"rate": CYCLING}, "rate-raised"),
    ],
)
def test_exceptions_apply(
    curve: Callable[[np.random.Generator], np.ndarray], more: dict[str, object], exception: str
) -> None:
    for seed in SEEDS:
        (verdict,) = said(oscillating_loss, run_with(curve(np.random.default_rng(seed)), **more))
        assert isinstance(verdict, Normal), seed
        assert verdict.exception == exception


@pytest.mark.parametrize(
    ("curve", "more"),
    [
        (lambda rng: turns(rng) + 4 * np.exp(-T / 10), {}),
        (turns, {"update": 3e-3}),
        (swings, {"epoch": 33}),
        (cycles, {"rate": np.linspace(0.1, 0.01, 300)}),
    ],
)
def test_exceptions_do_not_apply(
    curve: Callable[[np.random.Generator], np.ndarray], more: dict[str, object]
) -> None:
    for seed in SEEDS:
        (verdict,) = said(oscillating_loss, run_with(curve(np.random.default_rng(seed)), **more))
        assert isinstance(verdict, Finding), seed


@pytest.mark.parametrize("seed", SEEDS)
def test_sorted_data_are_no_finding(seed: int) -> None:
    run = run_with(sorted_data(np.random.default_rng(seed)), epoch=30)
    assert not found(oscillating_loss, run)


@pytest.mark.parametrize(
    ("losses", "because"),
    [
        ({"": np.ones(59)}, "59 of the 60"),
        ({"": np.full(100, np.nan)}, "0 of the 60"),
        ({"": np.sin(T)}, "sign"),
        ({"g": T + 1.0, "d": T + 2.0}, "compete"),
    ],
)
def test_says_what_it_lacks(losses: dict[str, np.ndarray], because: str) -> None:
    (verdict,) = said(oscillating_loss, run_of({LOSS: losses}))
    assert isinstance(verdict, NotExamined)
    assert because in verdict.because


def lengths(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(50, 3000, size=300).astype(float)


@pytest.mark.parametrize("owner", [TARGET_COUNT, DATA_BATCH_SIZE])
def test_a_sum_over_batches_of_many_sizes_is_excused(owner: object) -> None:
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        sizes = lengths(rng)
        each = np.ones(300)
        signals = {
            LOSS: {"": sizes * (1.5 + 0.05 * rng.normal(size=300))},
            LR: {"group 0": 0.1 * each},
            OUTPUT_SPREAD: {"cross_entropy": each},
            TARGET_COUNT: {"cross_entropy": 1000 * each},
            DATA_BATCH_SIZE: {"loader 0": 400 * each},
            UPDATE_RATIO: {"fc.weight": 0.03 * each},
        }
        signals[owner] = {next(iter(signals[owner])): sizes}
        (verdict,) = said(oscillating_loss, run_of(signals))
        assert isinstance(verdict, Normal), seed
        assert verdict.exception == "batch-sizes"


def test_swings_that_do_not_follow_varying_sizes_are_found() -> None:
    rng = np.random.default_rng(0)
    each = np.ones(300)
    run = run_of(
        {
            LOSS: {"": turns(rng)},
            LR: {"group 0": 0.1 * each},
            OUTPUT_SPREAD: {"cross_entropy": each},
            TARGET_COUNT: {"cross_entropy": lengths(rng)},
            UPDATE_RATIO: {"fc.weight": 0.03 * each},
        }
    )
    assert found(oscillating_loss, run)


def test_swings_far_below_the_best_constant_prediction_are_harmless() -> None:
    loss = 0.05 * turns(np.random.default_rng(0))
    each = np.ones(300)
    signals = {
        LOSS: {"": loss},
        LR: {"group 0": 0.1 * each},
        TARGET_COUNT: {"cross_entropy": 400 * each},
        OUTPUT_SPREAD: {"cross_entropy": each},
    }
    assert found(oscillating_loss, run_of(signals))
    baseline = {TARGET_ENTROPY: {"cross_entropy": 1.8 * each}}
    (verdict,) = said(oscillating_loss, run_of({**signals, **baseline}))
    assert isinstance(verdict, Normal)
    assert verdict.exception == "no-damage"


def test_nan_in_between_does_not_raise() -> None:
    loss = turns(np.random.default_rng(0))
    loss[[10, 200]] = np.nan, np.inf
    assert said(oscillating_loss, run_with(loss))
