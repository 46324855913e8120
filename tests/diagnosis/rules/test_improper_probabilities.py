import numpy as np
import pytest

from holter.diagnosis.rules.improper_probabilities import improper_probabilities
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import LOSS, TARGET_MAX, TARGET_MIN
from synthetic import found, run_of, said

LOGITS = "binary_cross_entropy_with_logits"


def given(low: float, high: float, *, function: str = LOGITS, steps: int = 20) -> Run:
    ones = np.ones(steps)
    return run_of({TARGET_MIN: {function: low * ones}, TARGET_MAX: {function: high * ones}})


@pytest.mark.parametrize(("low", "high"), [(-1, 1), (0, 255), (1, 2), (-0.5, 0.5)])
@pytest.mark.parametrize("function", [LOGITS, "binary_cross_entropy"])
def test_targets_beyond_0_and_1(low: float, high: float, function: str) -> None:
    (finding,) = found(improper_probabilities, given(low, high, function=function))
    assert finding.confidence is Confidence.CERTAIN
    assert f"from {low:g} to {high:g}" in finding.summary


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.05, 0.95), (0, 0), (1, 1), (-1e-6, 1.000001)])
def test_probabilities(low: float, high: float) -> None:
    (verdict,) = said(improper_probabilities, given(low, high))
    assert isinstance(verdict, Clear)


def test_other_losses_have_other_targets() -> None:
    assert said(improper_probabilities, given(-3, 250, function="mse_loss")) == []


def test_two_steps_are_too_few() -> None:
    (verdict,) = said(improper_probabilities, given(0, 255, steps=2))
    assert isinstance(verdict, NotExamined)


@pytest.mark.parametrize("least", [0.1, -3.0])
def test_one_step_is_enough_if_the_loss_falls_below_0(least: float) -> None:
    high = np.ones(20)
    high[15] = 255
    signals = {
        LOSS: {"": np.linspace(0.7, least, 20)},
        TARGET_MIN: {LOGITS: np.zeros(20)},
        TARGET_MAX: {LOGITS: high},
    }
    assert bool(found(improper_probabilities, run_of(signals))) is (least < 0)
