import pytest

from holter.diagnosis.rules.ignored_inputs import ignored_inputs
from holter.record import Run
from holter.record.findings import Clear, Confidence, Finding, NotExamined, Severity
from holter.record.signals import INPUT_LOSS, INPUT_RESPONSE, INPUT_ROUNDING
from synthetic import found, run_of, said


def controlled(*responses: float, **inputs: list[float]) -> Run:
    return run_of(
        {
            INPUT_RESPONSE: {"all inputs": list(responses), **inputs},
            INPUT_ROUNDING: {"": [1e-6] * len(responses)},
            INPUT_LOSS: {"own inputs": [0.5], "other inputs": [2.3]},
        }
    )


@pytest.mark.parametrize("responses", [(2.0, 3.0), (0.0, 1e-5), (1e-4, 0.0)])
def test_silent_if_outputs_change_once(responses: tuple[float, float]) -> None:
    (verdict,) = said(ignored_inputs, controlled(*responses))
    assert isinstance(verdict, Clear)
    assert "0.5" in verdict.because
    assert "2.3" in verdict.because


def test_certain_if_they_never_do() -> None:
    (finding,) = found(ignored_inputs, controlled(0.0, 5e-7))
    assert finding.confidence is Confidence.CERTAIN


def test_one_measurement_is_too_few() -> None:
    (verdict,) = said(ignored_inputs, controlled(0.0))
    assert isinstance(verdict, NotExamined)


def test_one_input_of_several_is_a_hint() -> None:
    (finding,) = said(ignored_inputs, controlled(2.0, 2.0, x=[2.0, 2.0], mask=[0.0, 0.0]))
    assert isinstance(finding, Finding)
    assert (finding.confidence, finding.severity) == (Confidence.HINT, Severity.WARNING)
    assert "the input mask" in finding.summary


def test_boundary() -> None:
    assert found(ignored_inputs, controlled(0.1, 0.1), min_response=0.2)
    assert not found(ignored_inputs, controlled(0.1, 0.3), min_response=0.2)
