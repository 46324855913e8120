from holter.diagnosis.rules.parameters_outside_model import parameters_outside_model
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined, Severity
from holter.record.signals import (
    GRAD_NORM,
    PARAMETER_IN_MODEL,
    PARAMETER_OPTIMIZER,
    PARAMETER_TRAINABLE,
    WEIGHT_TOTAL_NORM,
)
from synthetic import found, run_of, said

OLD = "optimizer.param_groups[0]"


def _run(
    standing: dict[str, tuple[int, int]],  # optimizer, in_model
    gradients: dict[str, float],
    *,
    frozen: tuple[str, ...] = (),
    stepping: tuple[str, ...] = ("",),
    steps: int = 20,
) -> Run:
    return run_of(
        {
            PARAMETER_OPTIMIZER: {name: [each[0]] for name, each in standing.items()},
            PARAMETER_IN_MODEL: {name: [each[1]] for name, each in standing.items()},
            PARAMETER_TRAINABLE: {name: [float(name not in frozen)] for name in standing},
            GRAD_NORM: {name: [value] * steps for name, value in gradients.items()},
            WEIGHT_TOTAL_NORM: {name: [1.0] * steps for name in stepping},
        }
    )


def test_a_model_made_anew_is_an_error() -> None:
    run = _run(
        {"a": (-1, 1), "b": (-1, 1), f"{OLD}[0]": (0, 0), f"{OLD}[1]": (0, 0)},
        {"a": 1.0, "b": 1.0},
    )
    (finding,) = found(parameters_outside_model, run)
    assert finding.severity is Severity.ERROR
    assert finding.confidence is Confidence.CERTAIN
    assert finding.summary.startswith("none of the 2 parameters")
    assert "20 steps" in finding.summary
    assert finding.evidence[0].signal is PARAMETER_IN_MODEL


def test_a_replaced_head_is_a_warning() -> None:
    run = _run({"body": (0, 1), "head": (-1, 1), f"{OLD}[1]": (0, 0)}, {"body": 1.0, "head": 1.0})
    (finding,) = found(parameters_outside_model, run)
    assert finding.severity is Severity.WARNING
    assert f"{OLD}[1]" in finding.evidence[0].says


def test_a_loose_parameter_that_gets_gradients_is_healthy() -> None:
    run = _run({"a": (0, 1), "log_temperature": (0, 0)}, {"a": 1.0, "log_temperature": 0.1})
    (verdict,) = said(parameters_outside_model, run)
    assert isinstance(verdict, Clear)
    assert "1 of them outside any model" in verdict.because


def test_a_frozen_stranger_tells_nothing() -> None:
    run = _run({"a": (0, 1), "teacher": (0, 0)}, {"a": 1.0}, frozen=("teacher",))
    (verdict,) = said(parameters_outside_model, run)
    assert isinstance(verdict, Clear)


def test_a_second_optimizer_counts_only_if_it_steps() -> None:
    standing = {"a": (0, 1), "later": (1, 0)}
    waiting = _run(standing, {"a": 1.0}, stepping=("first",))
    assert not found(parameters_outside_model, waiting)
    stepping = _run(standing, {"a": 1.0}, stepping=("first", "second"))
    (finding,) = found(parameters_outside_model, stepping)
    assert "optimizer 1" in finding.summary


def test_silent_on_an_ordinary_run() -> None:
    (verdict,) = said(parameters_outside_model, _run({"a": (0, 1)}, {"a": 1.0}))
    assert isinstance(verdict, Clear)
    assert "the 1 that" in verdict.because


def test_too_few_steps_say_nothing() -> None:
    run = _run({"a": (-1, 1), f"{OLD}[0]": (0, 0)}, {"a": 1.0}, steps=2)
    (verdict,) = said(parameters_outside_model, run)
    assert isinstance(verdict, NotExamined)
