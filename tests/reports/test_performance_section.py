"""Time and memory in a report."""

import numpy as np

from holter.record import Run
from holter.record.signals import (
    INPUT_TOKENS,
    MEMORY_AFTER_BACKWARD,
    MEMORY_AFTER_FORWARD,
    MEMORY_AFTER_OPTIMIZER,
    MEMORY_PEAK,
    MEMORY_RESERVED,
    TIME_STEP,
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
    assert "beyond the largest use: 5" in "\n".join(sentences(run))
    assert "fragmentation" not in "\n".join(sentences(run_with(more={})))
