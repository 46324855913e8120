from collections.abc import Callable

import numpy as np
import pytest

from holter.diagnosis.causes import explained_by
from holter.diagnosis.rules.diverging_loss import diverging_loss
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined, Severity
from holter.record.signals import (
    GRAD_TOTAL_NORM,
    LOSS,
    TARGET_ENTROPY,
    TARGET_MAX,
    TARGET_MIN,
    TARGET_STD,
)
from synthetic import found, run_of, said

SEEDS = range(20)

T = np.arange(300)


def run_with(loss: np.ndarray, *, norm: np.ndarray | None = None, known: bool = True) -> Run:
    signals = {LOSS: {"": loss}}
    if known:
        signals[TARGET_ENTROPY] = {"cross_entropy": np.full(len(loss), 2.3)}
    if norm is not None:
        signals[GRAD_TOTAL_NORM] = {"": norm}
    return run_of(signals)


def falls_then_rises(rng: np.random.Generator) -> np.ndarray:
    up = np.clip(T - 150, 0, None) / 150
    return 2.3 * np.exp(-T / 60) + 0.5 + 4 * up + 0.05 * rng.normal(size=300)


@pytest.mark.parametrize("noise", [0.01, 0.1, 0.3])
def test_fires_on_a_rise_above_the_start(noise: float) -> None:
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        loss = (2.3 + 0.01 * T) * np.exp(noise * rng.normal(size=300))
        (finding,) = found(diverging_loss, run_with(loss))
        assert finding.confidence is Confidence.HINT


def test_growing_gradients_make_it_likely_and_name_the_onset() -> None:
    loss = falls_then_rises(np.random.default_rng(0))
    norm = np.where(T < 160, 1.0, 20.0)
    (finding,) = found(diverging_loss, run_with(loss, norm=norm))
    assert finding.confidence is Confidence.LIKELY
    assert finding.severity is Severity.ERROR
    assert 120 <= finding.onset <= 240
    assert GRAD_TOTAL_NORM in {evidence.signal for evidence in finding.evidence}


@pytest.mark.parametrize(
    "loss",
    [
        [2.3, 2.6, 9.0, 300.0, 1e9, np.inf, np.nan, np.nan],
        [2.3] * 30 + [3.0, 40.0, 900.0, 4e7, np.nan, np.nan, np.nan],
    ],
)
def test_growth_that_ends_in_nan_is_likely(loss: list[float]) -> None:
    (finding,) = found(diverging_loss, run_with(np.array(loss), known=False))
    assert finding.confidence is Confidence.LIKELY
    assert "nonfinite-loss" in explained_by(finding.rule)


def test_explosion_is_seen_within_ten_steps() -> None:
    (finding,) = found(diverging_loss, run_with(0.5 * 8.0 ** np.arange(10), known=False))
    assert finding.onset < 5


@pytest.mark.parametrize(
    "curve",
    [
        lambda rng: 2 * np.exp(-T / 50) + 0.3 + 0.03 * rng.normal(size=300),
        lambda rng: 0.3 + 2 * np.exp(-T / 30) + 3 * np.exp(-(((T - 100) / 20) ** 2)),  # one cycle
        lambda rng: 0.5 + 0.4 * (1 - (T % 75) / 75) + 2 * np.exp(-T / 30),  # warm restarts
        lambda rng: np.where(rng.random(300) < 0.05, 30.0, 1.0) * (1 + 0.1 * rng.random(300)),
        lambda rng: np.abs(rng.standard_t(2, size=300)) + 0.5,
        lambda rng: 0.01 * np.exp(0.5 * rng.normal(size=300)),
        lambda rng: np.where(T == 299, 500.0, 1.0),  # one bad batch at the very end
        lambda rng: 50 * np.exp(-T / 100) + np.where(T < 20, 2.0, 5.0),  # a bad start that recovers
        lambda rng: -5 + 0.1 * rng.normal(size=300) + 0.001 * T,
        lambda rng: 100 * np.exp(-T / 40) + 20 + 0.02 * T,  # a weight that is annealed
    ],
)
def test_silent_on_sound_runs(curve: Callable[[np.random.Generator], np.ndarray]) -> None:
    for seed in SEEDS:
        (verdict,) = said(diverging_loss, run_with(curve(np.random.default_rng(seed))))
        assert isinstance(verdict, Clear), seed
        assert verdict.because


@pytest.mark.parametrize(("power", "applies"), [(2.0, True), (4.0, False)])
def test_targets_that_grow_as_much_as_the_loss_are_normal(power: float, applies: bool) -> None:
    grows = np.linspace(1, 10, 300)
    run = run_of(
        {
            LOSS: {"": grows**power},
            TARGET_STD: {"mse_loss": np.ones(300)},
            TARGET_MIN: {"mse_loss": -grows},
            TARGET_MAX: {"mse_loss": grows},
        }
    )
    (verdict,) = said(diverging_loss, run)
    assert isinstance(verdict, Normal) is applies
    if isinstance(verdict, Normal):
        assert verdict.exception == "growing-targets"


def test_a_harder_stage_is_a_jump_and_no_divergence() -> None:
    rng = np.random.default_rng(0)
    loss = np.where(T < 150, 1.0, 6.0) * (1 + 0.05 * rng.normal(size=300))
    assert not found(diverging_loss, run_with(loss))


def test_a_loss_of_unknown_scale_has_to_reach_three_times_its_start() -> None:
    for rise, count in ((1.0, 0), (4.0, 1)):
        run = run_with(1 + rise * T / 300, known=False)
        assert len(found(diverging_loss, run)) == count


@pytest.mark.parametrize(
    ("losses", "because"),
    [
        ({"": np.linspace(1, 2, 39)}, "39 of the 40"),
        ({"": np.full(100, np.nan)}, "0 of the 40"),
        ({"": np.sin(T)}, "sign"),
        ({"": []}, "no loss"),
        ({"g": T + 1.0, "d": T + 2.0}, "compete"),
    ],
)
def test_says_what_it_lacks(losses: dict[str, np.ndarray], because: str) -> None:
    (verdict,) = said(diverging_loss, run_of({LOSS: losses}))
    assert isinstance(verdict, NotExamined)
    assert because in verdict.because
