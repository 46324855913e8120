import numpy as np
import pytest

from holter.diagnosis.rules.single_class_softmax import single_class_softmax
from holter.record import Run, Series
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import OUTPUT_MAX, OUTPUT_MIN, OUTPUT_UNITS
from synthetic import found, run_of, said, series


def given(
    function: str, units: list[float], low: list[float] | Series, high: list[float] | Series
) -> Run:
    signals = {OUTPUT_UNITS: units, OUTPUT_MIN: low, OUTPUT_MAX: high}
    return run_of({signal: {function: values} for signal, values in signals.items()})


def test_cross_entropy_over_one_class() -> None:
    (finding,) = found(single_class_softmax, given("cross_entropy", [1] * 9, [-1] * 9, [2] * 9))
    assert finding.confidence is Confidence.CERTAIN


@pytest.mark.parametrize(
    "function", ["binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss"]
)
def test_output_is_one_whatever_the_input(function: str) -> None:
    (finding,) = found(single_class_softmax, given(function, [1] * 9, [1] * 9, [1] * 9))
    assert finding.confidence is Confidence.CERTAIN
    assert function in finding.summary


def test_from_a_later_step_a_sigmoid_may_have_been_driven_there() -> None:
    late = series([1.0] * 9, range(5, 14))
    run = run_of({each: {"mse_loss": late} for each in (OUTPUT_UNITS, OUTPUT_MIN, OUTPUT_MAX)})
    (finding,) = found(single_class_softmax, run)
    assert finding.confidence is Confidence.LIKELY


@pytest.mark.parametrize(
    ("function", "units", "low", "high"),
    [
        ("cross_entropy", [4] * 9, [-1] * 9, [2] * 9),
        ("cross_entropy", [1, 1, 7] * 3, [-1] * 9, [2] * 9),  # candidates vary in number
        ("binary_cross_entropy", [1] * 9, [0.2] * 9, [1] * 9),
        ("binary_cross_entropy", [1] * 9, [0.5] + [1] * 8, [0.7] + [1] * 8),  # saturated later
        ("binary_cross_entropy", [1] * 9, [1, np.nan, 1] * 3, [1, np.nan, 1] * 3),
    ],
)
def test_silent(function: str, units: list[float], low: list[float], high: list[float]) -> None:
    (verdict,) = said(single_class_softmax, given(function, units, low, high))
    assert isinstance(verdict, Clear)


def test_too_short() -> None:
    (verdict,) = said(single_class_softmax, given("cross_entropy", [1] * 2, [0] * 2, [0] * 2))
    assert isinstance(verdict, NotExamined)
