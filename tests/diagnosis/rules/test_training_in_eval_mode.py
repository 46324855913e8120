from collections.abc import Sequence

from holter.diagnosis.rules.training_in_eval_mode import training_in_eval_mode
from holter.record import Event, Run
from holter.record.events import OptimizerSeen
from holter.record.findings import Clear, Confidence, NotExamined, Severity
from holter.record.signals import BACKWARD_CALLS, MODE_EVAL_FRACTION, MODE_TRAINING
from synthetic import found, run_of, said


def run_with(training: Sequence[float], calls: Sequence[float] = ()) -> Run:
    """A model whose dropout and batch norm follow its own mode."""
    return run_of(
        {
            MODE_TRAINING: {"model": training},
            MODE_EVAL_FRACTION: {"model": [1 - each for each in training]},
            **({BACKWARD_CALLS: {"": calls}} if calls else {}),
        }
    )


def test_never_brought_back_after_validation() -> None:
    (finding,) = found(training_in_eval_mode, run_with([1] * 30 + [0] * 60))
    assert finding.onset == 30
    assert finding.severity is Severity.ERROR
    assert finding.confidence is Confidence.CERTAIN
    assert "from step 30" in finding.summary


def test_from_the_first_step_may_be_meant() -> None:
    (finding,) = found(training_in_eval_mode, run_with([0] * 40))
    assert finding.onset == 0
    assert finding.severity is Severity.WARNING
    assert finding.confidence is Confidence.LIKELY


def test_single_steps_in_eval_mode_are_chosen() -> None:
    (verdict,) = said(training_in_eval_mode, run_with([1, 1, 1, 0] * 20))
    assert isinstance(verdict, Clear)
    assert "60 of 80" in verdict.because


def test_frozen_statistics_in_training_mode_are_chosen() -> None:
    frozen = {MODE_TRAINING: {"model": [1] * 40}, MODE_EVAL_FRACTION: {"model": [1] * 40}}
    assert not found(training_in_eval_mode, run_of(frozen))


def test_modules_in_training_mode_beneath_a_model_in_eval_mode() -> None:
    mixed = {MODE_TRAINING: {"model": [0] * 40}, MODE_EVAL_FRACTION: {"model": [0.5] * 40}}
    assert not found(training_in_eval_mode, run_of(mixed))


def test_a_model_without_dropout_and_batch_norm_is_clear() -> None:
    run = run_of(
        {
            MODE_TRAINING: {"plain": [0] * 40, "model": [1] * 40},
            MODE_EVAL_FRACTION: {"plain": [], "model": [0] * 40},
        }
    )
    assert all(isinstance(verdict, Clear) for verdict in said(training_in_eval_mode, run))
    (verdict,) = said(training_in_eval_mode, run_of({MODE_TRAINING: {"plain": [0] * 40}}))
    assert isinstance(verdict, Clear)


def test_a_first_backward_in_eval_mode_is_but_a_hint() -> None:
    (throughout,) = found(training_in_eval_mode, run_with([0] * 40, [2] * 40))
    (later,) = found(training_in_eval_mode, run_with([1] * 20 + [0] * 20, [1] * 20 + [2] * 20))
    for finding in (throughout, later):
        assert finding.severity is Severity.WARNING
        assert finding.confidence is Confidence.HINT


def test_accumulation_is_no_excuse() -> None:
    (finding,) = found(training_in_eval_mode, run_with([1] * 20 + [0] * 20, [4] * 40))
    assert finding.confidence is Confidence.CERTAIN


def test_too_few_steps() -> None:
    (verdict,) = said(training_in_eval_mode, run_with([0] * 4))
    assert isinstance(verdict, NotExamined)


def test_a_stage_that_begins_in_eval_mode_may_have_chosen_it() -> None:
    events = [Event(30, 0.0, OptimizerSeen("fine", "SGD"))]
    run = run_of(
        {
            MODE_TRAINING: {"model": [1] * 30 + [0] * 60},
            MODE_EVAL_FRACTION: {"model": [0] * 30 + [1] * 60},
        },
        events=events,
    )
    (finding,) = found(training_in_eval_mode, run)
    assert finding.confidence is Confidence.HINT
    assert finding.severity is Severity.WARNING
