"""The comparison with torch.profiler: times of phases out of a trace."""

import numpy as np
import pytest

from bench import breakdown
from bench.breakdown import SKIPPED, Trace
from holter.record.signals import (
    CATALOGUE,
    GRAD_NORM,
    TIME_BACKWARD,
    TIME_FORWARD,
    TIME_OPTIMIZER,
    TIME_STEP,
)
from synthetic import run_of, series


def annotation(name: str, begin: float, end: float) -> dict:
    event = {"ph": "X", "cat": "user_annotation", "name": name}
    return {**event, "ts": begin, "dur": end - begin}


def kernel(number: int, launch: float, begin: float, end: float) -> list[dict]:
    correlated = {"ph": "X", "args": {"correlation": number}}
    return [
        {**correlated, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": launch, "dur": 1},
        {**correlated, "cat": "kernel", "name": "gemm", "ts": begin, "dur": end - begin},
    ]


def trace(*, lag: float, steps: int = 4) -> Trace:
    """Steps of 100 us on the host: 30, 50 and 20; the GPU is `lag` behind the host."""
    events = []
    for step in range(SKIPPED + steps):
        begin = 100.0 * step
        phases = {"forward": (0, 30), "backward": (30, 80), "optimizer": (80, 100)}
        for number, (name, (first, last)) in enumerate(phases.items()):
            events.append(annotation(name, begin + first, begin + last))
            ended = begin + last - 5 + lag
            events += kernel(3 * step + number, begin + last - 10, ended - 1, ended)
    waiting = {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "dur": 1}
    events += [{**waiting, "args": {}, "ts": 100.0 * SKIPPED + 50}]
    events += [{**waiting, "args": {}, "ts": 50.0}]  # while the profiler starts up
    return Trace(events)


@pytest.mark.parametrize("lag", [0.0, 500.0])
def test_phases_of_host_and_gpu(lag: float) -> None:
    read = trace(lag=lag)
    for phase, expected in {"forward": 30, "backward": 50, "optimizer": 20, "step": 100}.items():
        assert read.host(1, phase) == pytest.approx(expected * 1e-6)
        assert read.gpu(1, phase) == pytest.approx(expected * 1e-6)


def test_the_gpu_reaches_a_moment_once_everything_launched_before_has_ended() -> None:
    assert trace(lag=0.0).reached(100.0 * SKIPPED) == 100.0 * SKIPPED
    assert trace(lag=500.0).reached(100.0 * SKIPPED) == 100.0 * SKIPPED - 5 + 500


def test_waits_are_counted_in_the_measured_steps() -> None:
    assert trace(lag=0.0).waits() == {"cudaStreamSynchronize": 1 / 4}


def test_deep_steps_and_what_holter_does_are_left_out() -> None:
    read = trace(lag=0.0, steps=6)
    own = {"forward": 0, "backward": 10, "optimizer": 5, "step": 15}
    times = {TIME_FORWARD: 30, TIME_BACKWARD: 40, TIME_OPTIMIZER: 15, TIME_STEP: 85}
    light = np.arange(20) == 11  # what follows a deep step is left out as well
    run = run_of(
        {signal: {"": 1e-6 * np.where(light, us, 9 * us)} for signal, us in times.items()}
        | {
            CATALOGUE[f"time.device_{phase}"]: {"": [1e-6] * 16 + [9.0] * 20}  # after the profile
            for phase in breakdown.PHASES
        }
        | {GRAD_NORM: {"weight": series([1.0, 1.0], [12, 14])}}
    )
    parts = dict(breakdown.compared(run, read, 10, lambda _, phase: 1e-6 * own[phase]))
    assert len(parts) == 8
    for part in ("forward, host", "backward, host", "optimizer, host", breakdown.WHOLE):
        ours, theirs = parts[part]
        assert ours == pytest.approx(theirs, rel=1e-4)
    assert parts[breakdown.OWN] == pytest.approx((15e-6, 0.0))
    assert parts["forward, GPU"][0] == pytest.approx(1e-6)


def test_the_time_of_holter_is_told_by_phase() -> None:
    spent = [(0.0, 0.0, 1.0), (1.5, 3.5, 7.5)]
    own = {phase: breakdown.spent_in(spent, 1, phase) for phase in (*breakdown.PHASES, "step")}
    assert own == {"forward": 0.5, "backward": 2.0, "optimizer": 4.0, "step": 6.5}
