import math

from holter.diagnosis.rules.scheduler_before_optimizer import scheduler_before_optimizer
from holter.record import Event, Run
from holter.record.events import Occurrence, Resumed, SchedulerSeen
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import AMP_SKIPPED, LR, SCHEDULE_STEPS
from synthetic import found, run_of, said


def run_with(*early: bool, skipped: tuple[int, ...] = (), resumed: bool = False) -> Run:
    events: list[Event[Occurrence]] = [Event(0, 0.0, Resumed())] if resumed else []
    events += [Event(0, 0.0, SchedulerSeen("StepLR", early=each)) for each in early]
    signals = {SCHEDULE_STEPS: {"": [1] * 5}, LR: {"group 0": [0.1, math.nan, 0.1, 0.1, 0.1]}}
    if skipped:
        signals[AMP_SKIPPED] = {"": [int(step in skipped) for step in range(5)]}
    return run_of(signals, events=events)


def test_early() -> None:
    (finding,) = found(scheduler_before_optimizer, run_with(False, True))
    assert finding.confidence is Confidence.CERTAIN
    assert "StepLR" in finding.summary


def test_in_order() -> None:
    (verdict,) = said(scheduler_before_optimizer, run_with(False))
    assert isinstance(verdict, Clear)


def test_a_first_step_that_amp_skipped_is_excused() -> None:
    note, clear = said(scheduler_before_optimizer, run_with(True, skipped=(0,)))
    assert isinstance(note, Normal)
    assert isinstance(clear, Clear)


def test_a_later_skip_excuses_nothing() -> None:
    assert found(scheduler_before_optimizer, run_with(True, skipped=(3,)))


def test_resumed_and_none() -> None:
    (verdict,) = said(scheduler_before_optimizer, run_with(True, resumed=True))
    assert isinstance(verdict, NotExamined)
    (verdict,) = said(scheduler_before_optimizer, run_with())
    assert isinstance(verdict, NotExamined)
