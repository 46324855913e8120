import math

from holter.diagnosis.rules.motionless_weights import motionless_weights
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import (
    AMP_SKIPPED,
    GRAD_NORM,
    PARAMETER_TRAINABLE,
    UPDATE_RATIO,
    UPDATE_UNCHANGED_FRACTION,
)
from synthetic import found, run_of, said, series

SAMPLED = [0, 50, 100, 150]


def _run(
    unchanged: dict[str, list[float]],
    gradients: dict[str, float],
    *,
    frozen: tuple[str, ...] = (),
    skipped: tuple[int, ...] = (),
) -> Run:
    steps = range(151)
    return run_of(
        {
            UPDATE_UNCHANGED_FRACTION: {
                name: series(values, SAMPLED[: len(values)]) for name, values in unchanged.items()
            },
            UPDATE_RATIO: {
                name: series([1e-3 if value < 1 else 0.0 for value in values], SAMPLED)
                for name, values in unchanged.items()
                if len(values) == len(SAMPLED)
            },
            GRAD_NORM: {name: [value] * len(steps) for name, value in gradients.items()},
            PARAMETER_TRAINABLE: {name: [float(name not in frozen)] for name in unchanged},
            AMP_SKIPPED: {"": [float(step in skipped) for step in steps]},
        }
    )


def test_fires_when_nothing_moves_in_spite_of_gradients() -> None:
    run = _run({"a": [1, 1, 1, 1], "b": [1, 1, 1, 1]}, {"a": 0.3, "b": 0.0})
    (finding,) = found(motionless_weights, run)
    assert finding.confidence is Confidence.CERTAIN
    assert finding.onset == 0
    assert "no element of a changed in 4 sampled steps (0 to 150)" in finding.summary
    assert finding.evidence[0].signal is UPDATE_UNCHANGED_FRACTION


def test_one_element_that_moves_once_is_clear() -> None:
    run = _run({"a": [1, 1, 0.9999, 1], "b": [1, 1, 1, 1]}, {"a": 0.3, "b": 0.3})
    (verdict,) = said(motionless_weights, run)
    assert isinstance(verdict, Clear)
    assert "1 of 2" in verdict.because


def test_motion_in_an_early_piece_of_a_long_run_is_seen(monkeypatch) -> None:
    monkeypatch.setattr("holter.diagnosis.facts.windows.SMALLEST", 10)
    monkeypatch.setattr("holter.diagnosis.facts.windows.CELLS", 1)
    (verdict,) = said(motionless_weights, _run({"a": [1, 0.5, 1, 1]}, {"a": 0.3}))
    assert isinstance(verdict, Clear)


def test_frozen_parameters_do_not_count() -> None:
    run = _run({"base": [1, 1, 1, 1], "lora": [0, 0, 0, 0]}, {"lora": 0.3}, frozen=("base",))
    (verdict,) = said(motionless_weights, run)
    assert isinstance(verdict, Clear)
    assert "1 of 1" in verdict.because


def test_parameters_without_gradient_have_nothing_to_follow() -> None:
    for gradients in ({"a": 0.0}, {}):
        (verdict,) = said(motionless_weights, _run({"a": [1, 1, 1, 1]}, gradients))
        assert isinstance(verdict, NotExamined)


def test_skipped_steps_are_excused() -> None:
    run = _run({"a": [1, 1, 1, 1]}, {"a": 0.3}, skipped=(0, 50))
    (verdict,) = said(motionless_weights, run)
    assert isinstance(verdict, NotExamined)
    assert "2 of the 3" in verdict.because


def test_too_few_samples_say_nothing() -> None:
    run = _run({"a": [1, 1]}, {"a": 0.3})
    (verdict,) = said(motionless_weights, run)
    assert isinstance(verdict, NotExamined)
    assert len(found(motionless_weights, run, min_samples=2)) == 1


def test_a_nan_gradient_is_a_gradient() -> None:
    assert len(found(motionless_weights, _run({"a": [1, 1, 1, 1]}, {"a": math.nan}))) == 1
