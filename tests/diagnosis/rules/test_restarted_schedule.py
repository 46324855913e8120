import numpy as np
import pytest

from holter.diagnosis.rules.restarted_schedule import restarted_schedule
from holter.record import Event, Run
from holter.record.events import Occurrence, Resumed, SchedulerSeen
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import LOSS, LR, OPTIMIZER_AGE
from synthetic import found, run_of, said

STEPS, CUT = 200, 100
AT = np.arange(STEPS)
DECAY = 0.1 * (1 - AT / STEPS)
RESTARTED = np.concatenate([DECAY[:CUT], DECAY[:CUT]])
RESUME = Event(CUT, 0.0, Resumed())


def scheduler(step: int, name: str = "LambdaLR") -> Event:
    return Event(step, 0.0, SchedulerSeen(name))


def run_with(
    rate: np.ndarray,
    *events: Event[Occurrence],
    loss: np.ndarray | None = None,
    age: np.ndarray | None = None,
) -> Run:
    signals = {LR: {"group 0": rate}}
    if loss is not None:
        signals[LOSS] = {"": loss}
    if age is not None:
        signals[OPTIMIZER_AGE] = {"": age}
    return run_of(signals, events=events)


def test_back_at_its_peak_after_a_resume() -> None:
    (finding,) = found(restarted_schedule, run_with(RESTARTED, scheduler(0), RESUME))
    assert finding.onset == CUT
    assert finding.confidence is Confidence.LIKELY
    assert "from 0.0505 to 0.0995" in finding.summary


def test_a_warmup_that_is_repeated() -> None:
    warmup = np.minimum(0.1, 0.001 + AT / 500)
    rate = np.concatenate([warmup[:CUT], warmup[:CUT]])
    assert found(restarted_schedule, run_with(rate, RESUME))


def test_the_state_was_lost_as_well() -> None:
    age = np.concatenate([1 + AT[:CUT], 1 + AT[:CUT]])
    (finding,) = found(restarted_schedule, run_with(RESTARTED, RESUME, age=age))
    assert OPTIMIZER_AGE in {evidence.signal for evidence in finding.evidence}


FALLING = 2.0 * 0.98**AT


def test_a_second_scheduler_within_the_run_is_a_hint() -> None:
    run = run_with(RESTARTED, scheduler(0), scheduler(CUT), loss=FALLING, age=1 + AT)
    (finding,) = found(restarted_schedule, run)
    assert finding.confidence is Confidence.HINT


@pytest.mark.parametrize(
    "run",
    [
        run_with(DECAY, scheduler(0), RESUME),
        run_with(np.full(STEPS, 0.1), RESUME),
        run_with(np.concatenate([DECAY[:CUT], 0.1 * DECAY[:CUT]]), RESUME),  # a lower second phase
    ],
)
def test_clear(run: Run) -> None:
    (verdict,) = said(restarted_schedule, run)
    assert isinstance(verdict, Clear)


AGAIN = np.concatenate([FALLING[:CUT]] * 2)  # a loss that is back at its start
NEW = np.concatenate([1 + AT[:CUT]] * 2)  # the count of steps of a new optimizer


@pytest.mark.parametrize(
    ("name", "loss", "age", "exception"),
    [
        ("LambdaLR", AGAIN, 1 + AT, "another-training"),
        ("LambdaLR", FALLING, NEW, "another-phase"),
        ("CosineAnnealingWarmRestarts", FALLING, 1 + AT, "cyclic-scheduler"),
    ],
)
def test_exceptions(name: str, loss: np.ndarray, age: np.ndarray, exception: str) -> None:
    events = scheduler(0, name), scheduler(CUT, name)
    (verdict,) = said(restarted_schedule, run_with(RESTARTED, *events, loss=loss, age=age))
    assert isinstance(verdict, Normal)
    assert verdict.exception == exception
    # where the recording itself says that the run was resumed, only a cyclic schedule is excused
    resumed = run_with(RESTARTED, *events, RESUME, loss=loss, age=age)
    assert bool(found(restarted_schedule, resumed)) == (exception != "cyclic-scheduler")


def test_a_one_cycle_schedule_is_not_cyclic() -> None:
    assert found(restarted_schedule, run_with(RESTARTED, scheduler(0, "OneCycleLR"), RESUME))


def test_options() -> None:
    run = run_with(RESTARTED, RESUME)
    assert not found(restarted_schedule, run, jump=3.0)
    drifted = run_with(np.concatenate([DECAY[:CUT], 1.2 * DECAY[:CUT]]), RESUME)
    assert not found(restarted_schedule, drifted)
    assert found(restarted_schedule, drifted, tolerance=0.3)


@pytest.mark.parametrize("events", [(), (scheduler(0),)])
def test_not_examined(events: tuple[Event, ...]) -> None:
    (verdict,) = said(restarted_schedule, run_with(RESTARTED, *events))
    assert isinstance(verdict, NotExamined)


def test_a_resume_at_the_end_and_a_rate_that_is_not_a_number() -> None:
    late = Event(STEPS - 1, 0.0, Resumed())
    assert not found(restarted_schedule, run_with(DECAY, late))
    rate = RESTARTED.copy()
    rate[30] = np.nan
    assert found(restarted_schedule, run_with(rate, RESUME))
