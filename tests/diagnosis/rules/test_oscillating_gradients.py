import numpy as np
import pytest

from holter.diagnosis.rules.oscillating_gradients import oscillating_gradients
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import GRAD_TOTAL_NORM, LOSS
from layered import STEPS, falling, flat, layered, layers
from synthetic import found, said, series

TURNS = np.where(np.arange(STEPS) % 2, 1.0, 50.0)


def run(loss: np.ndarray, norm: object) -> Run:
    return layered(loss, {GRAD_TOTAL_NORM: {"": norm}}, layers(2))


def test_swings_and_a_bad_loss() -> None:
    (finding,) = found(oscillating_gradients, run(flat(), TURNS))
    assert finding.confidence is Confidence.HINT
    assert "factor of 50" in finding.summary


def test_a_loss_that_swings_with_them_and_does_not_fall() -> None:
    loss = np.where(np.arange(STEPS) % 2, 1.0, 1000.0) * flat(level=1.0)
    (finding,) = found(oscillating_gradients, run(loss, TURNS))
    assert finding.evidence[1].signal is LOSS
    assert not found(oscillating_gradients, run(loss * np.linspace(1, 0.5, STEPS), TURNS))


@pytest.mark.parametrize(
    ("loss", "norm"),
    [
        (flat(), 1.0),
        (flat(), np.exp(0.5 * np.random.default_rng(0).normal(size=STEPS))),
        (flat(), np.exp(2 * np.random.default_rng(0).normal(size=STEPS))),  # wild, not in turns
        (flat(), np.where(np.arange(STEPS) // 10 % 2, 1.0, 50.0)),
    ],
)
def test_silent(loss: np.ndarray, norm: object) -> None:
    (verdict,) = said(oscillating_gradients, run(loss, norm))
    assert isinstance(verdict, Clear)


def test_harmless_where_the_loss_falls() -> None:
    (verdict,) = said(oscillating_gradients, run(falling(), TURNS))
    assert isinstance(verdict, Normal)
    assert verdict.exception == "no-damage"


def test_a_loss_without_a_floor_is_not_examined() -> None:
    signs = np.where(np.arange(STEPS) % 2, 1.0, -1.0)
    (verdict,) = said(oscillating_gradients, run(signs, TURNS))
    assert isinstance(verdict, NotExamined)


def test_boundary_and_nan() -> None:
    norm = TURNS.copy()
    norm[150:152] = np.nan
    assert found(oscillating_gradients, run(flat(), norm))
    assert not found(oscillating_gradients, run(flat(), norm), swing=60.0)
    halves = np.where(np.arange(STEPS) < STEPS // 2, TURNS, 1.0)
    assert not found(oscillating_gradients, run(flat(), halves))
    assert found(oscillating_gradients, run(flat(), halves), most=0.4)


def test_norms_of_steps_that_are_not_consecutive_are_not_examined() -> None:
    (verdict,) = said(oscillating_gradients, run(flat(), series(TURNS, range(0, 400, 2))))
    assert isinstance(verdict, NotExamined)
    (verdict,) = said(oscillating_gradients, run(flat(30), TURNS[:30]))
    assert isinstance(verdict, NotExamined)
