import numpy as np
import pytest

from holter.diagnosis.rules.large_epsilon import large_epsilon
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import (
    ADAM_TINY_FRACTION,
    EPSILON,
    GRAD_ZERO_FRACTION,
    LR,
    UPDATE_RATIO,
    WEIGHT_NORM,
)
from layered import STEPS, falling, flat, layered, layers
from synthetic import found, said

NAMES = ("0.weight", "1.weight", "2.weight")


def given(
    loss: np.ndarray,
    *,
    tiny: float | np.ndarray = 1.0,
    epsilon: float = 1.0,
    ratio: float = 1e-4,
    zeros: float = 0.0,
) -> Run:
    """Weights of 32 x 32 with a norm of 3.2, so that an element is 0.1; a learning rate of 1e-3."""
    readings = {
        ADAM_TINY_FRACTION: dict.fromkeys(NAMES, tiny),
        GRAD_ZERO_FRACTION: dict.fromkeys(NAMES, zeros),
        UPDATE_RATIO: dict.fromkeys(NAMES, ratio),
        WEIGHT_NORM: dict.fromkeys(NAMES, 3.2),
        EPSILON: {"": epsilon},
        LR: {"": 1e-3},
    }
    return layered(loss, readings, layers(3))


@pytest.mark.parametrize("loss", [flat(), falling(start=1.46, end=1.3)])
def test_epsilon_is_the_brake(loss: np.ndarray) -> None:
    (finding,) = found(large_epsilon, given(loss))
    assert finding.confidence is Confidence.LIKELY
    assert "0.01 of the learning rate" in finding.summary
    assert finding.evidence[1].signal is EPSILON


def test_clear_where_gradients_are_larger() -> None:
    (verdict,) = said(large_epsilon, given(flat(), tiny=0.9))
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(
    "run",
    [
        given(falling()),  # a recipe with a large epsilon that does well
        given(flat(), ratio=5e-3),  # half of Adam's step: the loss stands still for another reason
        given(flat(), epsilon=1e-8),  # gradients have vanished
        given(np.array([1.0, -1.0] * 100)),
    ],
)
def test_noted_where_it_does_no_harm(run: Run) -> None:
    normal, clear = said(large_epsilon, run)
    assert isinstance(normal, Normal)
    assert isinstance(clear, Clear)


def test_nan_is_left_out() -> None:
    holes = np.where(np.arange(STEPS) % 2, np.nan, 1.0)
    assert found(large_epsilon, given(flat(), tiny=holes))


@pytest.mark.parametrize(
    "run",
    [
        given(flat(9)),
        given(flat(), zeros=0.9),  # rows of words that were not seen
        given(flat(), tiny=np.nan),
    ],
)
def test_not_examined(run: Run) -> None:
    (verdict,) = said(large_epsilon, run)
    assert isinstance(verdict, NotExamined)
