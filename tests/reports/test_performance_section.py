"""Time and memory in a report."""

import numpy as np
import pytest

from holter.record import Run
from holter.record.signals import (
    INPUT_TOKENS,
    MEMORY_AFTER_BACKWARD,
    MEMORY_AFTER_FORWARD,
    MEMORY_AFTER_OPTIMIZER,
    MEMORY_PEAK,
    MEMORY_RESERVED,
    SYNC_CALLS,
    TIME_COPY,
    TIME_DEVICE_BACKWARD,
    TIME_DEVICE_FORWARD,
    TIME_DEVICE_IDLE,
    TIME_DEVICE_OPTIMIZER,
    TIME_STEP,
    TIME_SYNC,
    Signal,
)
from holter.reports._performance import performance, sentences
from synthetic import run_of

GB = 2.0**30


def run_with(**more: dict[Signal, object]) -> Run:
    steady: dict[Signal, object] = {TIME_STEP: np.full(40, 0.5)}
    return run_of({signal: {"": values} for signal, values in (steady | more["more"]).items()})


def test_tokens_and_memory_by_phase() -> None:
    run = run_with(
        more={
            INPUT_TOKENS: np.full(40, 1000.0),
            MEMORY_AFTER_FORWARD: np.full(40, 3 * GB),
            MEMORY_AFTER_BACKWARD: np.full(40, 2 * GB),
            MEMORY_AFTER_OPTIMIZER: np.full(40, 1 * GB),
        }
    )
    text = "\n".join(sentences(run))
    assert "2 steps per second, 2,000 tokens per second" in text
    assert "at the end of a phase: forward" in text
    told = performance(run)
    assert told["time"]["tokens_per_second"] == 2000
    assert told["memory_after"]["forward"] == 3 * GB
    assert told["gpu_unused"] is None


def test_memory_that_is_reserved_beyond_the_largest_use() -> None:
    run = run_with(
        more={
            MEMORY_PEAK: np.linspace(2, 4, 40) * GB,
            MEMORY_RESERVED: np.linspace(4, 9, 40) * GB,
        }
    )
    assert performance(run)["gpu_unused"] == 5 * GB
    assert "beyond the peak use (fragmentation): 5" in "\n".join(sentences(run))
    assert "fragmentation" not in "\n".join(sentences(run_with(more={})))


@pytest.mark.parametrize(
    ("more", "bound", "helps"),
    [
        ({TIME_COPY: np.full(40, 0.25)}, "transfer; without it, 2 times", "pin_memory=True"),
        ({}, "launches", "torch.compile"),
        (
            {TIME_SYNC: np.full(40, 0.2), SYNC_CALLS: np.full(40, 3.0)},
            "synchronisation; without it, 1.7 times",
            "every hundred steps",
        ),
    ],
)
def test_what_bounds_a_run_on_a_gpu_comes_with_the_gain_and_what_helps(
    more: dict[Signal, object], bound: str, helps: str
) -> None:
    text = "\n".join(sentences(run_with(more={TIME_DEVICE_IDLE: np.ones(40), **more})))
    assert f"bound by {bound}" in text
    assert helps in text.partition("what helps: ")[2]


def test_the_clock_of_the_gpu_copies_and_waits() -> None:
    run = run_with(
        more={
            TIME_DEVICE_IDLE: np.zeros(40),
            TIME_DEVICE_FORWARD: np.full(40, 0.1),
            TIME_DEVICE_BACKWARD: np.full(40, 0.2),
            TIME_DEVICE_OPTIMIZER: np.full(40, 0.05),
            TIME_COPY: np.full(40, 0.02),
            TIME_SYNC: np.full(40, 0.4),
            SYNC_CALLS: np.full(40, 2.0),
        }
    )
    said = sentences(run)
    assert "time on the GPU: forward 100 ms, backward 200 ms, optimizer 50 ms" in said
    assert "copies to the GPU take 20 ms of a step (4 %)" in said
    assert "the host waits 400 ms of a step for the GPU, in 2 calls such as `item()`" in said
    assert not [each for each in sentences(run_with(more={})) if "GPU" in each or "helps" in each]
