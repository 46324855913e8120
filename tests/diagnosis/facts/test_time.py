"""Where the time of a step goes."""

import numpy as np
import pytest

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.time import Bound, Breakdown
from holter.record import Event, Run
from holter.record.events import PassBegan
from holter.record.signals import (
    DATA_BATCH_SIZE,
    DATA_BATCHES,
    INPUT_TOKENS,
    SYNC_CALLS,
    TIME_BACKWARD,
    TIME_CHECKPOINT,
    TIME_COMPILED_GRAPHS,
    TIME_COPY,
    TIME_DATA_WAIT,
    TIME_DEVICE_IDLE,
    TIME_EVALUATION,
    TIME_FORWARD,
    TIME_GARBAGE,
    TIME_OPTIMIZER,
    TIME_STEP,
    TIME_SYNC,
    Signal,
)
from synthetic import run_of, series

STEPS = 200


def timed(
    step: float = 0.1, more: dict[Signal, object] | None = None, passes: tuple[int, ...] = ()
) -> Run:
    """A run of equal steps, with 20 ms for each pass and for the update."""
    signals = {
        TIME_STEP: {"": np.full(STEPS, step)},
        TIME_FORWARD: {"": np.full(STEPS, 0.02)},
        TIME_BACKWARD: {"": np.full(STEPS, 0.02)},
        TIME_OPTIMIZER: {"": np.full(STEPS, 0.02)},
    }
    for signal, values in (more or {}).items():
        owner = "loader 0" if signal in (TIME_DATA_WAIT, DATA_BATCH_SIZE) else ""
        signals[signal] = {owner: values}
    return run_of(signals, events=[Event(at, 0.0, PassBegan("loader 0")) for at in passes])


def of(run: Run) -> Breakdown:
    times = Facts(run).time
    assert not isinstance(times, str)
    return times


def test_parts_add_up_to_the_step() -> None:
    more = {TIME_DATA_WAIT: np.full(STEPS, 0.03), DATA_BATCH_SIZE: np.full(STEPS, 8)}
    times = of(timed(more=more))
    assert sum(times.parts.values()) == pytest.approx(times.step)
    assert times.parts["other"] == pytest.approx(0.01, rel=1e-3)
    assert times.samples == pytest.approx(80)


def test_tokens_of_a_batch_are_those_of_a_step_times_its_batches() -> None:
    assert of(timed()).tokens is None
    tokens = {INPUT_TOKENS: {"": series([500.0, 700.0], (10, 60))}}
    step = {TIME_STEP: {"": np.full(STEPS, 0.1)}}
    assert of(run_of(step | tokens)).tokens == pytest.approx(6000)
    batches = {DATA_BATCHES: {"loader 0": np.full(STEPS, 4.0)}}
    assert of(run_of(step | tokens | batches)).tokens == pytest.approx(24000)


def test_too_few_steps() -> None:
    assert "needed" in str(Facts(run_of({TIME_STEP: {"": [0.1] * 12}})).time)
    assert isinstance(Facts(run_of({})).time, str)


def test_input_bounds_and_the_gain_is_what_is_left_without_it() -> None:
    times = of(timed(more={TIME_DATA_WAIT: np.full(STEPS, 0.06)}))
    assert times.bound is Bound.INPUT
    assert times.gain == pytest.approx(2.5, rel=1e-3)


def test_a_wait_of_the_first_pass_does_not_count_once_there_are_more() -> None:
    waits = np.where(np.arange(STEPS) < 50, 0.08, 0.0)
    more = {TIME_DATA_WAIT: waits}
    assert of(timed(more=more)).wait > 0.01
    assert of(timed(more=more, passes=(0, 50, 100, 150))).wait == 0


def test_the_first_batch_of_a_pass_is_told_apart() -> None:
    waits = np.where(np.isin(np.arange(STEPS), (100, 150)), 0.1, 0.001)
    times = of(timed(more={TIME_DATA_WAIT: waits}, passes=(0, 50, 100, 150)))
    assert times.wait == pytest.approx(0.001, rel=1e-2)
    assert times.start > 0


@pytest.mark.parametrize(
    ("more", "bound"),
    [
        ({}, Bound.COMPUTE),
        ({TIME_EVALUATION: np.full(STEPS, 0.3)}, Bound.EVALUATION),
        ({TIME_DEVICE_IDLE: np.zeros(STEPS)}, Bound.COMPUTE),
        ({TIME_DEVICE_IDLE: np.ones(STEPS)}, Bound.LAUNCHES),
        ({TIME_DEVICE_IDLE: np.ones(STEPS), TIME_COPY: np.full(STEPS, 0.05)}, Bound.TRANSFER),
        (
            {
                TIME_DEVICE_IDLE: np.ones(STEPS),
                TIME_SYNC: np.full(STEPS, 0.04),
                SYNC_CALLS: np.full(STEPS, 3),
            },
            Bound.SYNCHRONISATION,
        ),
        (
            {
                TIME_DEVICE_IDLE: np.zeros(STEPS),
                TIME_SYNC: np.full(STEPS, 0.095),  # the host waits because the GPU computes
                SYNC_CALLS: np.full(STEPS, 1),
            },
            Bound.COMPUTE,
        ),
    ],
)
def test_what_bounds_a_run(more: dict[Signal, object], bound: Bound) -> None:
    step = 0.4 if TIME_EVALUATION in more else 0.1
    assert of(timed(step, more)).bound is bound


@pytest.mark.parametrize(
    ("signal", "cause"),
    [
        (TIME_EVALUATION, "evaluation"),
        (TIME_CHECKPOINT, "checkpoint"),
        (TIME_GARBAGE, "garbage collection"),
        (TIME_DATA_WAIT, "data wait"),
        (TIME_COMPILED_GRAPHS, "compilation"),
        (None, ""),
    ],
)
def test_slow_steps_have_a_cause(signal: Signal | None, cause: str) -> None:
    slow = np.arange(STEPS) % 50 == 49
    run = timed()
    tables = {TIME_STEP: {"": np.where(slow, 1.0, 0.1)}}
    if signal is not None:
        owner = "loader 0" if signal is TIME_DATA_WAIT else ""
        tables[signal] = {owner: np.where(slow, 0.9, 0.0)}
    (group,) = of(run_of(tables)).slow
    assert group.cause == cause
    assert group.steps == (49, 99, 149, 199)
    assert group.excess == pytest.approx(3.6, rel=1e-3)
    assert of(run).slow == ()


def test_a_step_that_was_not_timed_has_no_part_in_the_breakdown() -> None:
    tables = {
        TIME_STEP: {"": series([0.1] * 100, range(100, 200))},
        TIME_FORWARD: {"": np.full(STEPS, 0.02)},
    }
    assert of(run_of(tables)).forward == pytest.approx(0.02, rel=1e-3)
