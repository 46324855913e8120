import numpy as np
import pytest

from holter.diagnosis.rules.partial_resume import partial_resume
from holter.record import Event, Run, Series
from holter.record.events import SchedulerSeen
from holter.record.findings import Clear, Normal
from holter.record.signals import (
    CHECKPOINT_OPTIMIZER_STEPS,
    CHECKPOINT_RESTORED,
    CHECKPOINT_SAME_OPTIMIZER,
    CHECKPOINT_SCHEDULER_STEPS,
    CHECKPOINT_WEIGHTS,
    LOSS,
)
from synthetic import found, run_of, said, series


def resume(
    *,
    weights: float = 1.0,
    optimizer: float | None = 640.0,
    scheduler: float | None = 10.0,
    same: float = 1.0,
    restored: float = 0.0,
    position: int | None = 11,
    loss: np.ndarray | None = None,
) -> Run:
    readings = {
        CHECKPOINT_WEIGHTS: weights,
        CHECKPOINT_OPTIMIZER_STEPS: optimizer,
        CHECKPOINT_SCHEDULER_STEPS: scheduler,
        CHECKPOINT_SAME_OPTIMIZER: same,
        CHECKPOINT_RESTORED: restored,
    }
    signals = {
        signal: {"": series([value])} for signal, value in readings.items() if value is not None
    }
    if loss is not None:
        signals[LOSS] = {"": Series(np.arange(len(loss)), loss.astype(np.float32))}
    events = (
        [] if position is None else [Event(64, 0.0, SchedulerSeen("StepLR", position=position))]
    )
    return run_of(signals, events=events)


def test_the_optimizer_is_lost() -> None:
    (finding,) = found(partial_resume, resume())
    assert "640 steps" in finding.summary
    assert "scheduler" not in finding.summary


def test_the_schedule_is_lost() -> None:
    (finding,) = found(partial_resume, resume(restored=1.0, position=1))
    assert [evidence.signal for evidence in finding.evidence] == [CHECKPOINT_SCHEDULER_STEPS]


def test_a_rise_of_the_loss_is_told() -> None:
    steps = np.arange(200)
    loss = 0.2 + 0.3 * np.exp(-(((steps - 40) / 20) ** 2))
    (finding,) = found(partial_resume, resume(loss=loss))
    assert finding.evidence[-1].signal is LOSS
    (finding,) = found(partial_resume, resume(loss=0.2 - 0.0005 * steps))
    assert finding.evidence[-1].signal is not LOSS


@pytest.mark.parametrize(
    "run",
    [
        resume(restored=1.0),
        resume(restored=1.0, position=None),  # no scheduler any more
        resume(restored=1.0, position=1, scheduler=1.0),
        resume(restored=1.0, position=1, scheduler=None),
        resume(optimizer=None),  # SGD without momentum
    ],
)
def test_what_is_restored_or_has_nothing_to_lose(run: Run) -> None:
    assert [type(each) for each in said(partial_resume, run)] == [Clear]


@pytest.mark.parametrize(
    ("run", "name"),
    [(resume(weights=0.9), "other-weights"), (resume(same=0.0), "other-settings")],
)
def test_fine_tuning(run: Run, name: str) -> None:
    (note,) = said(partial_resume, run)
    assert isinstance(note, Normal)
    assert note.exception == name
