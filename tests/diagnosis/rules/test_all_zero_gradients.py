import math

from holter.diagnosis.rules.all_zero_gradients import all_zero_gradients
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import GRAD_TOTAL_NORM, LOSS
from synthetic import found, run_of, said


def test_zero_from_the_first_step() -> None:
    (finding,) = found(all_zero_gradients, run_of({GRAD_TOTAL_NORM: {"": [0.0] * 10}}))
    assert finding.onset == 0
    assert finding.confidence is Confidence.CERTAIN
    assert "from the first step" in finding.summary


def test_gradients_that_died_later() -> None:
    norms = {"generator": [1.0] * 20 + [0.0] * 30, "discriminator": [1.0] * 50}
    (finding,) = found(all_zero_gradients, run_of({GRAD_TOTAL_NORM: norms}))
    assert finding.onset == 20
    assert "generator" in finding.summary
    assert finding.evidence[0].owner == "generator"


def test_zeros_that_come_back_are_noted() -> None:
    norms = [1.0] * 5 + [0.0] * 8 + [1.0] + [0.0] * 4
    note, clear = said(all_zero_gradients, run_of({GRAD_TOTAL_NORM: {"": norms}}))
    assert isinstance(note, Normal)
    assert "12 of 18" in note.summary
    assert isinstance(clear, Clear)


def test_tiny_and_non_finite_gradients_are_not_zero() -> None:
    norms = [1e-30] * 10 + [math.nan, math.inf] * 5
    (verdict,) = said(all_zero_gradients, run_of({GRAD_TOTAL_NORM: {"": norms}}))
    assert isinstance(verdict, Clear)


def test_a_loss_of_zero_is_an_exception() -> None:
    run = run_of({GRAD_TOTAL_NORM: {"": [1.0] + [0.0] * 9}, LOSS: {"": [2.0] + [0.0] * 9}})
    (note,) = said(all_zero_gradients, run)
    assert isinstance(note, Normal)
    assert note.exception == "zero-loss"


def test_a_loss_above_zero_is_no_exception() -> None:
    run = run_of({GRAD_TOTAL_NORM: {"": [1.0] + [0.0] * 9}, LOSS: {"": [2.0] + [1e-3] * 9}})
    assert found(all_zero_gradients, run)
    assert not found(all_zero_gradients, run, no_loss=1e-2)


def test_a_loss_of_zero_before_anything_was_learned_is_none() -> None:
    run = run_of({GRAD_TOTAL_NORM: {"": [0.0] * 10}, LOSS: {"": [-0.0] * 10}})
    assert found(all_zero_gradients, run)


def test_a_negative_or_unknown_loss_is_no_success() -> None:
    norms = {GRAD_TOTAL_NORM: {"": [0.0] * 10}}
    assert found(all_zero_gradients, run_of({**norms, LOSS: {"": [-3.0] * 10}}))
    assert found(all_zero_gradients, run_of({**norms, LOSS: {"": [math.nan] * 10}}))
    assert found(all_zero_gradients, run_of({**norms, LOSS: {"other": [0.0] * 10}}))


def test_too_few_steps() -> None:
    (verdict,) = said(all_zero_gradients, run_of({GRAD_TOTAL_NORM: {"": [0.0] * 4}}))
    assert isinstance(verdict, NotExamined)
    assert found(all_zero_gradients, run_of({GRAD_TOTAL_NORM: {"": [0.0] * 4}}), min_steps=3)
