import numpy as np
import pytest

from holter.diagnosis.rules.stalled_schedule import stalled_schedule
from holter.record import Event, Run
from holter.record.events import Occurrence, PassBegan, SchedulerSeen
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.meta import Meta
from holter.record.signals import DATA_BATCH_SIZE, LR, SCHEDULE_STEPS
from synthetic import found, run_of, said

STEPS, EPOCHS, LENGTH = 400, 10, 40
AT = np.arange(STEPS)
CALL = (AT + 1) // LENGTH  # calls before each step, one at the end of every epoch


def run_with(
    rate: np.ndarray,
    *,
    calls: np.ndarray | None = None,
    status: str = "finished",
    passes: bool = True,
    **scheduler: object,
) -> Run:
    per_epoch = (AT % LENGTH == LENGTH - 1).astype(float)
    seen = SchedulerSeen(**{"scheduler": "", **scheduler})
    events: list[Event[Occurrence]] = [Event(LENGTH, 0.0, seen)]
    signals = {
        LR: {"group 0": rate},
        SCHEDULE_STEPS: {"": per_epoch if calls is None else calls},
    }
    if passes:
        signals[DATA_BATCH_SIZE] = {"loader": [32] * STEPS}
        events += [Event(step, 0.0, PassBegan("loader")) for step in range(0, STEPS, LENGTH)]
    return run_of(signals, events=events, meta=Meta(status=status))


ONE_CYCLE = 0.004 + 0.096 * CALL / 120  # the warm-up of a OneCycleLR over 400 calls
COSINE = 0.05 * (1 + np.cos(np.pi * CALL / STEPS))


def test_one_cycle_that_never_leaves_its_warmup() -> None:
    run = run_with(ONE_CYCLE, scheduler="OneCycleLR", horizon=STEPS)
    (finding,) = found(stalled_schedule, run)
    assert finding.confidence is Confidence.LIKELY
    assert "from 0.004 to 0.012" in finding.summary


def test_cosine_over_all_steps_that_never_anneals() -> None:
    run = run_with(COSINE, scheduler="CosineAnnealingLR", horizon=STEPS)
    (finding,) = found(stalled_schedule, run)
    assert finding.confidence is Confidence.LIKELY
    assert "from 0.1 to 0.0998" in finding.summary


def test_a_linear_warmup_longer_than_the_run() -> None:
    run = run_with(0.1 * (0.01 + CALL / 200), scheduler="LinearLR", horizon=200)
    assert found(stalled_schedule, run)


def test_a_warmup_far_longer_than_the_run_is_a_hint() -> None:
    run = run_with(0.1 * (0.001 + CALL / 4000), scheduler="LinearLR", horizon=4000)
    (finding,) = found(stalled_schedule, run)
    assert finding.confidence is Confidence.HINT


def test_a_lambda_with_a_first_epoch_at_zero() -> None:
    (finding,) = found(stalled_schedule, run_with(0.001 * CALL, scheduler="LambdaLR"))
    assert finding.confidence is Confidence.LIKELY


def test_a_lambda_that_rises_to_the_end() -> None:
    (finding,) = found(stalled_schedule, run_with(0.001 * (1 + CALL), scheduler="LambdaLR"))
    assert finding.confidence is Confidence.HINT


@pytest.mark.parametrize(
    "run",
    [
        run_with(0.05 * (1 + np.cos(np.pi * CALL / EPOCHS)), scheduler="Cosine", horizon=EPOCHS),
        run_with(COSINE, scheduler="CosineAnnealingLR", horizon=100),  # ended early, in epochs
        run_with(0.1 * 0.1 ** (CALL // 4), scheduler="StepLR", step_size=4),
        run_with(0.001 * np.minimum(1 + CALL, 5), scheduler="LambdaLR"),  # warmed up, then held
        run_with(np.full(STEPS, 0.1), scheduler="ReduceLROnPlateau"),
        run_with(COSINE, calls=np.ones(STEPS), scheduler="CosineAnnealingLR", horizon=STEPS),
    ],
)
def test_clear(run: Run) -> None:
    (verdict,) = said(stalled_schedule, run)
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize("status", ["interrupted", "failed", "running"])
def test_a_run_that_is_not_over(status: str) -> None:
    run = run_with(ONE_CYCLE, status=status, scheduler="OneCycleLR", horizon=STEPS)
    (verdict,) = said(stalled_schedule, run)
    assert isinstance(verdict, NotExamined)


def test_regular_calls_show_epochs_where_nothing_else_does() -> None:
    run = run_with(ONE_CYCLE, passes=False, scheduler="OneCycleLR", horizon=STEPS)
    (finding,) = found(stalled_schedule, run)
    assert finding.confidence is Confidence.LIKELY
    run = run_with(ONE_CYCLE, passes=False, scheduler="LambdaLR")
    (finding,) = found(stalled_schedule, run)
    assert finding.confidence is Confidence.HINT


def test_what_an_epoch_is_has_to_be_known() -> None:
    calls = np.zeros(STEPS)
    calls[[3, 50, 60, 200, 390]] = 1
    run = run_with(ONE_CYCLE, calls=calls, passes=False, scheduler="OneCycleLR", horizon=STEPS)
    (verdict,) = said(stalled_schedule, run)
    assert isinstance(verdict, NotExamined)


def test_too_few_calls() -> None:
    calls = np.zeros(STEPS)
    calls[:2] = 1
    run = run_with(ONE_CYCLE, calls=calls, scheduler="OneCycleLR", horizon=STEPS)
    (verdict,) = said(stalled_schedule, run)
    assert isinstance(verdict, NotExamined)
    (verdict,) = said(stalled_schedule, run, min_calls=2)
    assert isinstance(verdict, Clear)
