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
    assert "0.01 learning rates" in finding.summary
    assert finding.evidence[1].signal is EPSILON


@pytest.mark.parametrize(
    "run",
    [
        given(flat(), tiny=0.9),
        given(flat(), ratio=5e-3),  # half of Adam's step: the loss is flat for another reason
        given(flat(), epsilon=1e-8),  # the default: gradients have vanished
    ],
)
def test_clear(run: Run) -> None:
    (verdict,) = said(large_epsilon, run)
    assert isinstance(verdict, Clear)


def test_harmless_where_the_loss_falls() -> None:
    (verdict,) = said(large_epsilon, given(falling()))  # a recipe with a large epsilon
    assert isinstance(verdict, Normal)
    assert verdict.exception == "no-damage"


def test_options() -> None:
    assert found(large_epsilon, given(flat(), tiny=0.9), share=0.8)
    assert found(large_epsilon, given(flat(), ratio=5e-3), max_pace=0.6)
    assert found(large_epsilon, given(flat(), epsilon=1e-8), min_epsilon=1e-9)
    assert found(large_epsilon, given(falling()), min_fall=0.99)


def test_nan_is_left_out() -> None:
    holes = np.where(np.arange(STEPS) % 2, np.nan, 1.0)
    assert found(large_epsilon, given(flat(), tiny=holes))


@pytest.mark.parametrize(
    "run",
    [
        given(flat(9)),
        given(flat(), zeros=0.9),  # rows of words that were not seen
        given(flat(), tiny=np.nan),
        given(flat(), ratio=np.nan),
        given(np.array([1.0, -1.0] * 100)),  # whether it fell is unknown
    ],
)
def test_not_examined(run: Run) -> None:
    (verdict,) = said(large_epsilon, run)
    assert isinstance(verdict, NotExamined)
