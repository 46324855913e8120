import numpy as np
import pytest

from holter.diagnosis.rules.tiny_updates import tiny_updates
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import LOSS, LR, TARGET_ENTROPY, UPDATE_RATIO
from layered import STEPS, by_layer, falling, flat, layered, layers
from synthetic import found, said

SLIDING = np.linspace(2.31, 2.29, STEPS)  # monotone, and next to nothing


def run(loss: np.ndarray, ratio: object, more: dict | None = None) -> Run:
    return layered(loss, {UPDATE_RATIO: by_layer([ratio] * 3), **(more or {})}, layers(3))


@pytest.mark.parametrize("loss", [flat(), SLIDING])
def test_tiny_updates_and_a_loss_that_hardly_falls(loss: np.ndarray) -> None:
    (finding,) = found(tiny_updates, run(loss, 2e-7, {LR: {"group": 1e-5}}))
    assert finding.confidence is Confidence.LIKELY
    assert "1e-05" in finding.summary
    assert "10,000 times" in finding.fix


def test_small_updates_at_chance() -> None:
    entropy = {TARGET_ENTROPY: {"cross_entropy": np.full(STEPS, 2.302)}}
    assert found(tiny_updates, run(SLIDING, 5e-5, entropy))
    assert not found(tiny_updates, run(SLIDING, 5e-5))
    assert found(tiny_updates, run(flat(), 2e-5))  # the level is not known, and the loss stays
    assert not found(tiny_updates, run(SLIDING, 2e-4, entropy))


def test_small_updates_of_a_run_that_ends_just_below_chance_are_a_hint() -> None:
    entropy = {TARGET_ENTROPY: {"cross_entropy": np.full(STEPS, 2.302)}}
    slowly = np.linspace(2.45, 2.2, STEPS)
    (finding,) = found(tiny_updates, run(slowly, 5e-5, entropy))
    assert finding.confidence is Confidence.HINT
    assert not found(tiny_updates, run(np.linspace(2.45, 1.8, STEPS), 5e-5, entropy))


def test_a_pretrained_model_is_excused() -> None:
    entropy = {TARGET_ENTROPY: {"cross_entropy": np.full(STEPS, 2.302)}}
    (verdict,) = said(tiny_updates, run(flat(level=0.8), 2e-6, entropy))
    assert isinstance(verdict, Normal)
    assert verdict.exception == "pretrained-model"
    assert found(tiny_updates, run(flat(level=0.8), 2e-6, entropy), learned=0.3)
    assert found(tiny_updates, run(flat(level=2.0), 2e-6, entropy))
    assert found(tiny_updates, run(flat(level=0.8), 2e-6))  # no constant prediction is known


def test_harmless_where_the_loss_falls() -> None:
    (verdict,) = said(tiny_updates, run(falling(), 1e-6))
    assert isinstance(verdict, Normal)
    assert verdict.exception == "no-damage"
    assert found(tiny_updates, run(falling(), 1e-6), min_fall=0.99)


@pytest.mark.parametrize(
    ("loss", "ratio"),
    [
        (flat(), 1e-3),
        (flat(), 0.0),  # motionless-weights
        (flat(), np.r_[np.full(20, 0.5), np.full(STEPS - 20, 1e-8)]),  # blown up first, then still
    ],
)
def test_silent(loss: np.ndarray, ratio: object) -> None:
    (verdict,) = said(tiny_updates, run(loss, ratio))
    assert isinstance(verdict, Clear)


def test_the_end_of_a_schedule_does_not_count() -> None:
    rate = np.r_[np.full(60, 1e-2), np.full(STEPS - 60, 1e-8)]
    assert not found(tiny_updates, run(flat(), rate / 10, {LR: {"group": rate}}))


def test_a_very_long_run_may_move_slowly() -> None:
    made = run(SLIDING, 5e-6)
    assert found(tiny_updates, made)
    assert not found(tiny_updates, made, reach=1e-4)


def test_a_warmup_is_not_examined() -> None:
    rate = np.linspace(1e-6, 1e-3, STEPS)
    (verdict,) = said(tiny_updates, run(flat(), 1e-6, {LR: {"group": rate}}))
    assert isinstance(verdict, NotExamined)


def test_competing_losses_and_short_runs_are_not_examined() -> None:
    (verdict,) = said(tiny_updates, run(flat(), 1e-7, {LOSS: {"a": flat(), "b": 2 * flat()}}))
    assert isinstance(verdict, NotExamined)
    (verdict,) = said(tiny_updates, run(flat(5), 1e-7))
    assert isinstance(verdict, NotExamined)


def test_a_reading_that_is_not_finite_spoils_nothing() -> None:
    ratio = np.full(STEPS, 1e-7)
    ratio[50] = np.nan
    assert found(tiny_updates, run(flat(), ratio))
