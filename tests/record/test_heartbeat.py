"""Heartbeats: written in place, read at any time, and judged by whether the process lives."""

import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holter.record.heartbeat import (
    FILE,
    Activity,
    Heartbeat,
    activity_line,
    alive_line,
    read_heartbeat,
)


def beat(**fields) -> Heartbeat:
    now = time.time()
    mine = {"process": os.getpid(), "space": Path("/proc/self/ns/pid").stat().st_ino}
    return Heartbeat(
        **{"step": 3, "activity": Activity.FETCHED, "wall": now, "alive": now, **mine, **fields}
    )


def test_what_is_written_is_read(tmp_path):
    (tmp_path / FILE).write_bytes(activity_line(123_456_789, Activity.VALIDATED) + alive_line())
    read = read_heartbeat(tmp_path)
    assert (read.step, read.activity, read.process) == (
        123_456_789,
        Activity.VALIDATED,
        os.getpid(),
    )
    assert read.wall == pytest.approx(time.time(), abs=5)
    assert read.silence == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize("content", [b"", b"3 fetched", b"3 sleeping 1.0".ljust(64) + b"1 1 1.0"])
def test_what_is_no_heartbeat_is_none(tmp_path, content):
    assert read_heartbeat(tmp_path) is None
    (tmp_path / FILE).write_bytes(content)
    assert read_heartbeat(tmp_path) is None


def test_of_two_positions_the_lower_is_behind():
    assert beat(step=3).position < beat(step=4).position
    assert beat(activity=Activity.FETCHED).position < beat(activity=Activity.BACKWARD).position
    assert beat(activity=Activity.BACKWARD).position < beat(activity=Activity.UPDATED).position


@pytest.mark.skipif(sys.platform != "linux", reason="PID namespaces")
def test_a_process_of_this_machine_is_looked_up():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert beat().is_alive(platform.node())
    assert not beat(process=ended.pid).is_alive(platform.node())
    assert beat(process=ended.pid).is_alive("another machine")
    assert beat(process=ended.pid, space=1).is_alive(platform.node())  # of another container
    assert not beat(alive=time.time() - 600).is_alive("another machine")
