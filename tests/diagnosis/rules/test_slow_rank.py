"""The rank that others wait for is named if one phase of its steps explains the wait."""

import pytest

from holter.diagnosis.rules.slow_rank import slow_rank
from holter.record.findings import Clear, Normal
from holter.record.signals import TIME_BACKWARD, TIME_DATA_WAIT, TIME_FORWARD, TIME_STEP
from ranked import Process, ranked
from synthetic import found, said

STEPS = 40


def process(*, wait=0.01, forward=0.02, backward=0.03, length=0.1) -> Process:
    """A rank whose phases take so many seconds."""
    readings = {
        TIME_DATA_WAIT: {"loader 0": [wait] * STEPS},
        TIME_FORWARD: {"": [forward] * STEPS},
        TIME_BACKWARD: {"": [backward] * STEPS},
        TIME_STEP: {"": [length] * STEPS},
    }
    return Process(readings, steps=STEPS)


def four(tmp_path, slow: Process, other: Process):
    return ranked(tmp_path, {rank: slow if rank == 2 else other for rank in range(4)})


@pytest.mark.parametrize(
    ("slow", "says"),
    [
        (process(wait=0.06), "50 ms more waiting for its loader"),
        (process(forward=0.07), "50 ms more in its forward pass"),
    ],
)
def test_the_phase_that_explains_the_wait_is_named(tmp_path, slow, says):
    (finding,) = found(slow_rank, four(tmp_path, slow, process(backward=0.08)))
    assert "others wait 50 % of a step for rank 2" in finding.summary
    assert says in finding.summary


def test_a_wait_that_no_phase_explains_has_no_cause(tmp_path):
    run = four(tmp_path, process(wait=0.03), process(backward=0.08))  # 20 ms of 50 ms
    (verdict,) = said(slow_rank, run)
    assert isinstance(verdict, Normal)
    assert "rank 2" in verdict.summary


def test_short_waits_are_clear(tmp_path):
    (verdict,) = said(slow_rank, four(tmp_path, process(wait=0.02), process(backward=0.04)))
    assert isinstance(verdict, Clear)


def test_ranks_that_are_equally_fast_are_clear(tmp_path):
    (verdict,) = said(slow_rank, four(tmp_path, process(), process()))
    assert isinstance(verdict, Clear)
    assert "no rank waits" in verdict.because
