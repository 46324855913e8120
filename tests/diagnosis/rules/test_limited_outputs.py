import numpy as np
import pytest

from holter.diagnosis.rules.limited_outputs import limited_outputs
from holter.record import Run
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined
from holter.record.signals import OUTPUT_MAX, OUTPUT_MIN, TARGET_MAX, TARGET_MIN, TARGET_STD
from synthetic import found, run_of, said

STEPS = 100
RISING = np.linspace(0.1, 1, STEPS)


def given(
    low: np.ndarray,
    high: np.ndarray,
    *,
    least: float | np.ndarray = -2.5,
    most: float | np.ndarray = 2.5,
    function: str = "mse_loss",
) -> Run:
    steps = np.ones(len(low))
    values = {
        OUTPUT_MIN: low,
        OUTPUT_MAX: high,
        TARGET_MIN: least * steps,
        TARGET_MAX: most * steps,
        TARGET_STD: steps,
    }
    return run_of({signal: {function: each} for signal, each in values.items()})


@pytest.mark.parametrize(
    ("low", "high", "name"),
    [
        (0 * RISING, 2.5 * RISING, "ReLU"),
        (-0.999 * np.sqrt(RISING), 0.999 * np.sqrt(RISING), "tanh"),
        (0.5 - 0.499 * np.sqrt(RISING), 0.5 + 0.499 * np.sqrt(RISING), "sigmoid"),
    ],
)
def test_outputs_end_where_an_activation_ends(low: np.ndarray, high: np.ndarray, name: str) -> None:
    low, high = np.where(RISING > 0.3, low, low / 2), np.where(RISING > 0.3, high, high / 2)
    if name != "ReLU":
        late = RISING > 0.4
        low, high = np.where(late, low.min(), low), np.where(late, high.max(), high)
    (finding,) = found(limited_outputs, given(low, high))
    assert finding.confidence is Confidence.LIKELY
    assert name in finding.summary


@pytest.mark.parametrize(
    "run",
    [
        given(-2 * RISING, 2 * RISING),
        given(0 * RISING, 2 * RISING, least=0.0),  # rates: no target below zero
        given(0.01 + 0 * RISING, 0.6 * RISING, least=0.0, most=5.0),  # on its way up
        given(0.01 + 0 * RISING, 0.99 * RISING, least=0.0, most=5.0),  # just there
        given(0.3 + 0 * RISING, 0.7 + 0 * RISING),  # far from every bound
        given(0 * RISING, 0 * RISING),  # always 0
        given(0.0 + 0 * RISING, 2 * RISING, least=-0.1),  # noise about zero
    ],
)
def test_silent(run: Run) -> None:
    (verdict,) = said(limited_outputs, run)
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(("growth", "applies"), [(1.0, True), (0.1, False)])
def test_swapped_arguments(growth: float, applies: bool) -> None:
    least, most = -0.8 - growth * RISING, 1.2 + growth * RISING
    (verdict,) = said(limited_outputs, given(0 * RISING, 1 + 0 * RISING, least=least, most=most))
    assert isinstance(verdict, Normal if applies else Finding)
    assert not isinstance(verdict, Normal) or verdict.exception == "swapped-arguments"


def test_nan_is_left_out() -> None:
    low = np.where(np.arange(STEPS) % 2, np.nan, 0)
    assert found(limited_outputs, given(low, 2.5 * RISING + low))


def test_classes_have_no_range() -> None:
    assert not said(limited_outputs, given(0 * RISING, RISING, function="cross_entropy"))


def test_too_short() -> None:
    (verdict,) = said(limited_outputs, given(np.zeros(19), np.ones(19)))
    assert isinstance(verdict, NotExamined)
