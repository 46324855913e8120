import math

import numpy as np
import pytest

from holter.diagnosis.rules.unusable_learning_rate import unusable_learning_rate
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined, Severity
from holter.record.signals import LR
from synthetic import found, run_of, said


def run_with(*rates: list[float]) -> Run:
    return run_of({LR: {f"group {index}": rate for index, rate in enumerate(rates)}})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1e-4])
def test_a_single_impossible_rate(value: float) -> None:
    (finding,) = found(unusable_learning_rate, run_with([1e-3] * 7 + [value] + [1e-3] * 7))
    assert finding.onset == 7
    assert finding.severity is Severity.WARNING  # a preview rule fails no check
    assert finding.confidence is Confidence.CERTAIN
    assert "group 0" in finding.summary


def test_zero_from_the_first_step() -> None:
    (finding,) = found(unusable_learning_rate, run_with([0.0] * 20))
    assert finding.onset == 0
    assert finding.severity is Severity.WARNING  # a preview rule fails no check
    assert finding.preview


def test_zero_right_after_the_first_step() -> None:
    (finding,) = found(unusable_learning_rate, run_with([0.1] + [0.0] * 99))
    assert finding.onset == 1
    assert finding.severity is Severity.WARNING  # a preview rule fails no check


def test_decayed_too_early_is_a_warning() -> None:
    run = run_with([0.1] * 100 + [0.0] * 100)
    (finding,) = found(unusable_learning_rate, run)
    assert finding.onset == 100
    assert finding.severity is Severity.WARNING
    (finding,) = found(unusable_learning_rate, run, error_share=0.5)
    assert finding.severity is Severity.WARNING  # a preview rule fails no check
    assert not found(unusable_learning_rate, run, min_share=0.6)


def test_groups_of_one_optimizer_belong_together() -> None:
    run = run_of(
        {
            LR: {
                "generator group 0": [0.0] * 50,
                "generator group 1": [0.1] * 5 + [0.0] * 45,
                "discriminator group 0": [0.1] * 50,
            }
        }
    )
    (finding,) = found(unusable_learning_rate, run)
    assert finding.onset == 5
    assert "generator" in finding.summary


def test_frozen_groups_are_noted() -> None:
    note, clear = said(unusable_learning_rate, run_with([0.0] * 50, [0.1] * 50))
    assert isinstance(note, Normal)
    assert note.exception == ""
    assert "group 0" in note.summary
    assert isinstance(clear, Clear)


@pytest.mark.parametrize(
    "rates",
    [
        np.minimum(1, np.arange(200) / 100),  # warm-up from 0
        np.maximum(0, 1 - np.arange(201) / 200),  # decay to 0
        [0.0] * 30 + [0.1] * 30,  # a first epoch at 0
        [0.1] * 90 + [0.0] * 22,  # the tail of a schedule
        [0.1] * 50 + [-1e-9] * 50,  # 0 but for rounding
    ],
)
def test_silent_on_schedules(rates: list[float]) -> None:
    (verdict,) = said(unusable_learning_rate, run_with(rates))
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize("rates", [[0.0] * 19, []])
def test_too_few_steps(rates: list[float]) -> None:
    (verdict,) = said(unusable_learning_rate, run_with(rates))
    assert isinstance(verdict, NotExamined)
