import math

from holter.diagnosis.rules.scheduler_before_optimizer import scheduler_before_optimizer
from holter.record import Event, Run
from holter.record.events import Occurrence, Resumed, SchedulerSeen
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import LR, SCHEDULE_STEPS
from synthetic import found, run_of, said


def run_with(*early: bool, resumed: bool = False) -> Run:
    events: list[Event[Occurrence]] = [Event(0, 0.0, Resumed())] if resumed else []
    events += [Event(0, 0.0, SchedulerSeen("StepLR", early=flag)) for flag in early]
    signals = {SCHEDULE_STEPS: {"": [1] * 5}, LR: {"group 0": [0.1, math.nan, 0.1, 0.1, 0.1]}}
    return run_of(signals, events=events)


def test_early() -> None:
    (finding,) = found(scheduler_before_optimizer, run_with(False, True))
    assert finding.confidence is Confidence.CERTAIN
    assert "StepLR" in finding.summary


def test_in_order() -> None:
    (verdict,) = said(scheduler_before_optimizer, run_with(False))
    assert isinstance(verdict, Clear)


def test_the_order_is_wrong_in_a_resumed_run_too() -> None:
    assert found(scheduler_before_optimizer, run_with(True, resumed=True))


def test_no_scheduler() -> None:
    (verdict,) = said(scheduler_before_optimizer, run_with())
    assert isinstance(verdict, NotExamined)
