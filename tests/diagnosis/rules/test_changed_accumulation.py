"""When a change in the number of batches per step is the cause of a failure."""

import numpy as np
import pytest

from holter import Run, Series, check, diagnose
from holter.record import Event
from holter.record.events import (
    CaptureWritten,
    ChangesTried,
    ChangeTried,
    Occurrence,
    Reproduced,
    TriageMade,
    WindowMeasure,
)
from holter.record.findings import Confidence
from holter.record.signals import BACKWARD_CALLS, GRAD_TOTAL_NORM, LOSS, REPLAY_LOSS

RULES = ("changed-accumulation", "poisonous-batch")
FAILED = CaptureWritten("nonfinite", 62, "captures/step-62")


def run(*occurrences: Occurrence, calls: int = 48, growth: float = 12.0) -> Run:
    steps = np.arange(64)
    late = steps >= 60
    tables = {
        BACKWARD_CALLS: {"": Series(steps, np.where(late, calls, 4).astype(np.float32))},
        GRAD_TOTAL_NORM: {"": Series(steps, np.where(late, growth, 1).astype(np.float32))},
        LOSS: {"": Series(steps, np.ones(64, np.float32))},
        REPLAY_LOSS: {"unchanged": Series(steps[40:], np.ones(24, np.float32))},
    }
    return Run.of(tables, events=[Event(0, 0.0, what) for what in occurrences])


def replayed(as_before: WindowMeasure) -> list[Occurrence]:
    fails = WindowMeasure(nonfinite_at=62)
    return [
        Reproduced("bit for bit", "it is said", 62, 61, 40, "nonfinite", unchanged=fails),
        ChangeTried("as many batches per step as before", measure=as_before),
        ChangeTried("step skipped", measure=WindowMeasure(late_loss=1.0)),
        ChangesTried(),
        TriageMade(batch_on_older_weights=True, older_batch_on_these_weights=False),
    ]


def found(made: Run) -> dict[str, Confidence]:
    return {each.rule: each.confidence for each in check(made, select=RULES).findings}


def test_a_failure_right_after_the_change_is_likely() -> None:
    (finding,) = check(run(FAILED), select=RULES).findings
    assert finding.confidence is Confidence.LIKELY
    assert "from 4 to 48 at step 60, and gradients grow 12 times" in finding.summary
    assert finding.onset == 60


def test_as_many_batches_as_before_make_it_certain_and_no_batch_poisonous() -> None:
    checkup = check(run(FAILED, *replayed(WindowMeasure(late_loss=1.0))), select=RULES)
    leading = diagnose(checkup).leading
    assert leading is not None
    assert leading.rule == "changed-accumulation"
    assert leading.confidence is Confidence.CERTAIN


def test_as_many_batches_as_before_that_do_not_cure_rule_it_out() -> None:
    measure = WindowMeasure(nonfinite_at=62)
    assert set(found(run(FAILED, *replayed(measure)))) == {"poisonous-batch"}


def test_a_change_without_a_failure_is_harmless() -> None:
    assert found(run()) == {}


def test_gradients_of_the_same_size_rule_it_out() -> None:
    assert found(run(FAILED, growth=1.0)) == {}


def test_a_change_that_was_survived_before_is_not_the_cause() -> None:
    steps = np.arange(64)
    made = run(FAILED)
    calls = np.where((steps >= 60) | (steps == 30), 48, 4).astype(np.float32)
    tables = {signal: dict(made[signal].items()) for signal in (GRAD_TOTAL_NORM, LOSS)}
    again = Run.of({**tables, BACKWARD_CALLS: {"": Series(steps, calls)}}, events=made.events)
    (clear,) = check(again, select=("changed-accumulation",)).clear
    assert "step 30" in clear.because


def test_a_constant_number_is_clear() -> None:
    checkup = check(run(FAILED, calls=4), select=("changed-accumulation",))
    (clear,) = checkup.clear
    assert "4 backward() calls throughout" in clear.because


def test_a_division_that_cures_names_a_change_long_before() -> None:
    divided = "gradients divided by the backward passes of a step"
    steps = np.arange(160)
    calls = np.where(steps >= 60, 8, 4).astype(np.float32)
    fails = WindowMeasure(nonfinite_at=140)
    tables = {
        BACKWARD_CALLS: {"": Series(steps, calls)},
        LOSS: {"": Series(steps, np.ones(160, np.float32))},
        REPLAY_LOSS: {"unchanged": Series(steps[120:], np.ones(40, np.float32))},
    }
    told = [
        Reproduced("bit for bit", "it is said", 140, 138, 120, "nonfinite", unchanged=fails),
        ChangeTried(divided, measure=WindowMeasure(late_loss=1.0)),
        ChangesTried(),
    ]
    made = Run.of(tables, events=[Event(0, 0.0, what) for what in told])
    (finding,) = check(made, select=RULES[:1]).findings
    assert finding.confidence is Confidence.CERTAIN
    assert "at step 60" in finding.summary and divided in finding.summary


@pytest.mark.parametrize(
    ("after", "growth", "is_found"), [(1.6, 16, 1), (1.05, 16, 0), (1.6, 1, 0)]
)
def test_a_loss_that_stays_above_its_level(after: float, growth: float, is_found: int) -> None:
    steps, noise = np.arange(320), np.random.default_rng(0).normal(0, 0.2, 320)
    late = steps >= 200
    tables = {
        BACKWARD_CALLS: {"": Series(steps, np.where(late, 16, 1).astype(np.float32))},
        GRAD_TOTAL_NORM: {"": Series(steps, np.where(late, growth, 1).astype(np.float32))},
        LOSS: {"": Series(steps, (np.where(late, after, 1) + noise).astype(np.float32))},
    }
    findings = check(Run.of(tables), select=RULES[:1]).findings
    assert [each.onset for each in findings] == [200] * is_found
