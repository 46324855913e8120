import numpy as np
import pytest

from holter.diagnosis.rules.exploding_gradients import exploding_gradients
from holter.record import Run, Series
from holter.record.findings import Clear, Confidence, Normal, NotExamined, Severity
from holter.record.signals import (
    CLIP_COEFFICIENT,
    GRAD_NORM,
    GRAD_TOTAL_NORM,
    LOSS,
    LOSS_SUMMED,
    TARGET_ENTROPY,
    UPDATE_RATIO,
    WEIGHT_TOTAL_NORM,
)
from layered import STEPS, broken, by_layer, falling, flat, layered, layers, rising
from synthetic import found, said

GROWN = np.r_[np.ones(100), np.geomspace(1, 1e4, 20), np.full(80, 1e4)]


def run(loss: np.ndarray, norm: object, more: dict | None = None) -> Run:
    return layered(loss, {GRAD_TOTAL_NORM: {"": norm}, **(more or {})}, layers(2))


@pytest.mark.parametrize("loss", [rising(), broken(), flat()])
def test_grown_a_hundredfold_and_a_bad_loss(loss: np.ndarray) -> None:
    (finding,) = found(exploding_gradients, run(loss, GROWN))
    assert finding.confidence is Confidence.LIKELY
    assert 100 < finding.onset < 120
    assert "huge-updates" not in finding.explains


def test_ends_not_finite() -> None:
    norm = np.r_[np.ones(97), [200, 1e9, np.inf], np.full(100, np.nan)]
    (finding,) = found(exploding_gradients, run(broken(), norm))
    assert finding.onset == 97
    assert "1e+09" in finding.summary


def test_from_the_first_step() -> None:
    more = {WEIGHT_TOTAL_NORM: {"": 10.0}, GRAD_NORM: by_layer([8e5, 1e2])}
    (finding,) = found(exploding_gradients, run(flat(), 1e6, more))
    assert finding.onset == 0
    assert "huge-updates" in finding.explains
    assert "large-initial-loss" not in finding.explains  # the first loss comes before them
    assert [each.owner for each in finding.evidence if each.signal is GRAD_NORM] == ["0.weight"]


@pytest.mark.parametrize(
    ("loss", "norm"),
    [
        (flat(), 5000.0),  # a sum over the batch: large and steady
        (flat(), np.r_[np.ones(150), [1e5], np.ones(49)]),  # an outlier
        (flat(), np.r_[np.ones(100), np.linspace(1, 30, 100)]),  # late in a schedule
        (rising(), np.r_[np.full(10, 1e3), np.ones(190)]),  # large at first
        (flat(), 0.0),
    ],
)
def test_silent(loss: np.ndarray, norm: object) -> None:
    verdicts = said(exploding_gradients, run(loss, norm, {WEIGHT_TOTAL_NORM: {"": 0.5}}))
    assert any(isinstance(each, Clear) for each in verdicts)
    assert not found(exploding_gradients, run(loss, norm))


def test_an_outlier_that_was_clipped_is_normal() -> None:
    norm = np.r_[np.ones(150), [400.0], np.ones(49)]
    more = {UPDATE_RATIO: by_layer([1e-3, 1e-3]), CLIP_COEFFICIENT: {"": 1.0}}
    normal, clear = said(exploding_gradients, run(falling(), norm, more))
    assert isinstance(normal, Normal)
    assert "1 of 200" in normal.summary
    assert isinstance(clear, Clear)


def test_an_outlier_that_moved_the_weights_is_not_noted() -> None:
    norm = np.r_[np.ones(150), [400.0], np.ones(49)]
    more = {UPDATE_RATIO: by_layer([norm * 1e-3] * 2)}
    (verdict,) = said(exploding_gradients, run(falling(), norm, more))
    assert isinstance(verdict, Clear)


def test_short_runs_are_not_examined() -> None:
    (verdict,) = said(exploding_gradients, run(flat(5), 1.0))
    assert isinstance(verdict, NotExamined)


def test_only_the_last_tenth_counts() -> None:
    came_back = np.r_[GROWN[:180], np.ones(STEPS - 180)]
    assert not found(exploding_gradients, run(flat(), came_back))


def test_no_damage() -> None:
    (note,) = said(exploding_gradients, run(falling(), GROWN))
    assert isinstance(note, Normal)
    assert note.exception == "no-damage"


def test_competing_losses_make_a_hint() -> None:
    competing = {LOSS: {"a": flat(), "b": 2 * flat()}}
    (finding,) = found(exploding_gradients, run(flat(), GROWN, competing))
    assert finding.confidence is Confidence.HINT
    assert finding.severity is Severity.WARNING


def test_a_norm_that_is_lost_at_once_did_not_explode() -> None:
    lost = np.r_[np.ones(100), np.full(100, np.nan)]
    assert not found(exploding_gradients, run(broken(), lost))
    grew = np.r_[np.ones(96), [20.0] * 4, np.full(100, np.nan)]
    assert found(exploding_gradients, run(broken(), grew))
    assert not found(exploding_gradients, run(broken(), grew), finite_growth=50.0)


def test_a_large_first_loss_without_a_large_update_makes_a_hint() -> None:
    more = {WEIGHT_TOTAL_NORM: {"": 10.0}, TARGET_ENTROPY: {"cross_entropy": 1e-3}}
    (finding,) = found(exploding_gradients, run(flat(), 100.0, more))
    assert finding.confidence is Confidence.HINT
    assert "huge-updates" not in finding.explains


BURST = np.r_[[0.2, 0.3, 5, 150, 1600, 3, 40, 5800, 1100], np.full(STEPS - 9, 2.0)]


def test_a_burst_within_the_first_steps_is_a_hint() -> None:
    (finding,) = found(exploding_gradients, run(flat(), BURST))
    assert finding.confidence is Confidence.HINT
    assert finding.onset == 3
    assert "huge-updates" not in finding.explains
    (note,) = said(exploding_gradients, run(falling(), BURST))
    assert isinstance(note, Normal)


@pytest.mark.parametrize(
    "norm",
    [
        np.r_[[0.2, 5800, 1100], np.full(STEPS - 3, 2.0)],  # two norms alone
        np.r_[np.full(30, 0.2), [5800.0] * 5, np.full(STEPS - 35, 0.2)],  # later, and gone
    ],
)
def test_no_burst(norm: np.ndarray) -> None:
    assert not found(exploding_gradients, run(flat(), norm))


def test_another_loss_function_has_gradients_of_another_scale() -> None:
    norm = np.r_[np.ones(100), np.full(100, 500.0)]
    steps = np.arange(200)
    called = {
        "mse_loss": Series(steps, np.zeros(200, np.float32)),
        "l1_loss": Series(steps[100:], np.zeros(100, np.float32)),
    }
    assert not found(exploding_gradients, run(rising(), norm, {LOSS_SUMMED: called}))
    assert found(exploding_gradients, run(rising(), norm))
