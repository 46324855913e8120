from collections.abc import Callable

import numpy as np
import pytest

from holter.diagnosis.rules.loss_spike import loss_spike
from holter.record import Event
from holter.record.events import OptimizerSeen
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined
from holter.record.signals import (
    GRAD_TOTAL_NORM,
    INPUT_STD,
    LOSS,
    LR,
    MODEL_ELEMENTS,
    TARGET_STD,
    UPDATE_RATIO,
)
from synthetic import found, run_of, said

SEEDS = range(20)
T = np.arange(800)


def calm(rng: np.random.Generator, noise: float = 0.02) -> np.ndarray:
    return 2 + 2 * np.exp(-T / 80) + noise * rng.normal(size=len(T))


def spike(at: int, height: float, *, decay: float = 15.0, lasts: float = 0.0) -> np.ndarray:
    after = at <= T
    return after * (lasts + height * np.exp(-np.clip(T - at, 0, None) / decay))


def test_a_spike_that_does_not_recover_is_found() -> None:
    for seed in SEEDS:
        loss = calm(np.random.default_rng(seed)) + spike(400, 1.0, lasts=0.08)
        (finding,) = found(loss_spike, run_of({LOSS: {"": loss}}))
        assert finding.confidence is Confidence.HINT
        assert 400 <= finding.onset <= 402


def test_the_first_mover_is_named_and_makes_it_likely() -> None:
    rng = np.random.default_rng(0)
    run = run_of(
        {
            LOSS: {"": calm(rng) + spike(400, 1.0, lasts=0.08)},
            GRAD_TOTAL_NORM: {"": np.exp(0.1 * rng.normal(size=800)) * (1 + spike(398, 20.0))},
            UPDATE_RATIO: {"fc.weight": 0.01 * (1 + 0.05 * rng.normal(size=800) + spike(393, 3.0))},
        }
    )
    (finding,) = found(loss_spike, run)
    assert finding.confidence is Confidence.LIKELY
    assert finding.onset == 393
    assert "the relative update reached" in finding.summary
    assert [each.signal for each in finding.evidence] == [LOSS, UPDATE_RATIO, GRAD_TOTAL_NORM]


def test_a_new_optimizer_has_a_level_of_its_own() -> None:
    higher = calm(np.random.default_rng(0)) + (T >= 400)
    joined = Event(399, 0.0, OptimizerSeen("", "SGD"))
    assert found(loss_spike, run_of({LOSS: {"": higher}}))
    (clear,) = said(loss_spike, run_of({LOSS: {"": higher}}, events=[joined]))
    assert isinstance(clear, Clear)
    again = higher + spike(600, 1.0, lasts=0.2)
    (finding,) = found(loss_spike, run_of({LOSS: {"": again}}, events=[joined]))
    assert 600 <= finding.onset <= 602


def test_an_earlier_spike_hides_no_later_one() -> None:
    for seed in SEEDS:
        first = calm(np.random.default_rng(seed)) + spike(400, 2.0, decay=5)
        loss = first + spike(440, 0.6, decay=5, lasts=0.1)
        (finding,) = found(loss_spike, run_of({LOSS: {"": loss}}))
        assert finding.onset <= 442


@pytest.mark.parametrize("height", [0.6, 5.0, 1e6])
def test_a_recovered_spike_is_normal(height: float) -> None:
    for seed in SEEDS:
        loss = calm(np.random.default_rng(seed)) + spike(400, height, decay=6)
        note, clear = said(loss_spike, run_of({LOSS: {"": loss}}))
        assert isinstance(note, Normal)
        assert isinstance(clear, Clear)


def hard_batches(rng: np.random.Generator) -> np.ndarray:
    return calm(rng) + (rng.random(800) < 0.01) * 1.0


def heavy_tails(rng: np.random.Generator) -> np.ndarray:
    return calm(rng) * np.exp(0.05 * rng.standard_t(2, size=800))


def sudden_drop(rng: np.random.Generator) -> np.ndarray:
    return calm(rng) - 1.0 * (T > 400)


def staircase(rng: np.random.Generator) -> np.ndarray:
    return 3 - 0.3 * (T // 160) + 0.01 * rng.normal(size=800)


def tiny(rng: np.random.Generator) -> np.ndarray:
    return 1e-4 * np.exp(rng.normal(size=800)) + 2 * np.exp(-T / 20)


def slow_rise(rng: np.random.Generator) -> np.ndarray:
    return 2 + T / 800 + 0.05 * rng.normal(size=800)


@pytest.mark.parametrize(
    "curve", [calm, hard_batches, heavy_tails, sudden_drop, staircase, tiny, slow_rise]
)
def test_no_finding_on_sound_curves(curve: Callable[[np.random.Generator], np.ndarray]) -> None:
    for seed in SEEDS:
        assert not found(loss_spike, run_of({LOSS: {"": curve(np.random.default_rng(seed))}}))


def test_a_restart_of_the_learning_rate_is_no_spike() -> None:
    rate = np.where(T < 400, 0.01, 0.1)
    loss = calm(np.random.default_rng(0)) + spike(402, 0.5, lasts=0.3)
    assert not found(loss_spike, run_of({LOSS: {"": loss}, LR: {"group 0": rate}}))


def test_other_data_are_normal() -> None:
    rng = np.random.default_rng(0)
    std = np.where(T < 400, 1.0, 1.6) * (1 + 0.01 * rng.normal(size=800))
    loss = calm(rng) + spike(400, 0.5, lasts=0.3)
    (note,) = said(loss_spike, run_of({LOSS: {"": loss}, INPUT_STD: {"net": std}}))
    assert isinstance(note, Normal)
    assert note.exception == "new-data"


@pytest.mark.parametrize(("size", "is_new"), [(768.0, True), (512.0, False)])
def test_a_longer_task_is_normal(size: float, *, is_new: bool) -> None:
    sizes = np.select([T < 250, T < 390], [256.0, 512.0], size)
    loss = calm(np.random.default_rng(0)) + spike(400, 0.5, lasts=0.3)
    (verdict,) = said(loss_spike, run_of({LOSS: {"": loss}, MODEL_ELEMENTS: {"": sizes}}))
    assert isinstance(verdict, Normal if is_new else Finding)


def grown_targets(times: float) -> list[object]:
    """A loss that triples while the standard deviation of new targets grows `times`."""
    rng = np.random.default_rng(0)
    loss = 0.1 + 0.002 * rng.normal(size=800) + np.where(T < 400, 0.0, 0.2)
    squares = np.where(T < 400, 1.0, times**2)
    std = np.sqrt(np.cumsum(squares) / (T + 1))  # of all targets so far
    return said(loss_spike, run_of({LOSS: {"": loss}, TARGET_STD: {"mse_loss": std}}))


def test_targets_that_grow_as_much_as_the_loss_are_normal() -> None:
    (note,) = grown_targets(2.0)
    assert isinstance(note, Normal)
    assert note.exception == "growing-targets"


def test_a_loss_that_rises_more_than_its_targets_is_a_spike() -> None:
    (finding,) = grown_targets(1.3)
    assert isinstance(finding, Finding)


def test_a_spike_at_the_end_is_too_early_to_tell() -> None:
    loss = calm(np.random.default_rng(0)) + spike(780, 1.0, lasts=0.5)
    note, _ = said(loss_spike, run_of({LOSS: {"": loss}}))
    assert isinstance(note, Normal)
    assert "too close to the end" in note.summary


@pytest.mark.parametrize(
    ("losses", "because"),
    [
        ({"": np.ones(99)}, "99 of the 100"),
        ({"": np.full(300, np.nan)}, "0 of the 100"),
        ({"g": T + 1.0, "d": T + 2.0}, "compete"),
    ],
)
def test_says_what_it_lacks(losses: dict[str, np.ndarray], because: str) -> None:
    (verdict,) = said(loss_spike, run_of({LOSS: losses}))
    assert isinstance(verdict, NotExamined)
    assert because in verdict.because


def test_nan_and_a_constant_loss_do_not_raise() -> None:
    loss = calm(np.random.default_rng(0)) + spike(400, 1.0, lasts=0.2)
    loss[[50, 500]] = np.nan, np.inf
    assert found(loss_spike, run_of({LOSS: {"": loss}}))
    assert not found(loss_spike, run_of({LOSS: {"": np.ones(300)}}))
