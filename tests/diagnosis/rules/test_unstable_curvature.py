import numpy as np
import pytest

from holter.diagnosis.rule import NO_DAMAGE
from holter.diagnosis.rules.unstable_curvature import unstable_curvature
from holter.record import Run
from holter.record.findings import Clear, Confidence, Level, Normal, NotExamined, Severity
from holter.record.signals import (
    SHARPNESS_BOUND,
    SHARPNESS_DESCENT,
    SHARPNESS_EIGENVALUE,
    SHARPNESS_RATE,
    SHARPNESS_RESIDUAL,
)
from synthetic import found, run_of, said

RISES = np.linspace(1.0, 5.0, 21)
FALLS = np.linspace(1.0, 0.1, 21)
LEAPS = np.concatenate([[1.0, 4.0], np.linspace(3.0, 0.5, 19)])
BURSTS = np.geomspace(1.0, 1e9, 21)


def run_with(
    ratio: float,
    descent: np.ndarray,
    reduced: np.ndarray | None = FALLS,
    *,
    residual: float = 1e-4,
    trial: str = "hessian",
) -> Run:
    losses = {"as set": descent} | ({} if reduced is None else {"reduced": reduced})
    return run_of(
        {
            SHARPNESS_EIGENVALUE: {"hessian": [3.0]} | {trial: [20 * ratio]},
            SHARPNESS_RESIDUAL: {"hessian": [1e-4]} | {trial: [residual]},
            SHARPNESS_BOUND: {trial: [20.0]},
            SHARPNESS_RATE: {"": [0.1]},
            SHARPNESS_DESCENT: losses,
        }
    )


@pytest.mark.parametrize("trial", ["hessian", "preconditioned"])
def test_far_above_the_bound_with_a_loss_that_rises(trial: str) -> None:
    (finding,) = found(unstable_curvature, run_with(3.0, RISES, trial=trial))
    assert finding.severity is Severity.WARNING
    assert finding.confidence is Confidence.LIKELY
    assert finding.level is Level.HYPERPARAMETER
    assert finding.evidence[0].owner == trial
    assert "0.033" in finding.fix


def test_a_little_above_with_a_loss_that_leaves_for_good() -> None:
    assert found(unstable_curvature, run_with(1.3, BURSTS))
    assert found(unstable_curvature, run_with(1.3, np.array([1.0, 9.0, np.inf])))
    assert not found(unstable_curvature, run_with(0.9, BURSTS))


@pytest.mark.parametrize("descent", [FALLS, LEAPS])
def test_above_the_bound_while_steps_lower_the_loss(descent: np.ndarray) -> None:
    (verdict,) = said(unstable_curvature, run_with(5.0, descent))
    assert isinstance(verdict, Normal)
    assert verdict.exception == NO_DAMAGE


def test_the_edge_of_stability_is_normal() -> None:
    note, clear = said(unstable_curvature, run_with(1.05, FALLS))
    assert isinstance(note, Normal)
    assert isinstance(clear, Clear)


def test_a_rise_just_above_the_bound_is_no_finding() -> None:
    (verdict,) = said(unstable_curvature, run_with(1.5, RISES))
    assert isinstance(verdict, Clear)


def test_nothing_is_said_where_a_lower_rate_does_not_help() -> None:
    (verdict,) = said(unstable_curvature, run_with(3.0, RISES, RISES))
    assert isinstance(verdict, NotExamined)
    (verdict,) = said(unstable_curvature, run_with(3.0, RISES, None))
    assert isinstance(verdict, NotExamined)


def test_an_inexact_eigenvalue_clears_nothing_and_bounds_from_below() -> None:
    (verdict,) = said(unstable_curvature, run_with(0.2, FALLS, residual=0.4))
    assert isinstance(verdict, NotExamined)
    assert found(unstable_curvature, run_with(3.0, RISES, residual=0.4))


def test_far_below_is_clear_with_the_numbers() -> None:
    (verdict,) = said(unstable_curvature, run_with(0.1, FALLS, None))
    assert isinstance(verdict, Clear)
    assert "0.1 times" in verdict.because


def test_what_is_not_finite_is_not_examined() -> None:
    (verdict,) = said(unstable_curvature, run_with(np.nan, FALLS))
    assert isinstance(verdict, NotExamined)
    (verdict,) = said(unstable_curvature, run_with(3.0, np.array([np.nan])))
    assert isinstance(verdict, NotExamined)
