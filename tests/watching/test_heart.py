"""The heartbeat of a process: what it did last, that it lives, and where it is when silent."""

import os
import threading
import time

import pytest

from holter.record.heartbeat import STACKS, Activity, read_heartbeat
from holter.watching.collectors.lane import Clock, Lane
from holter.watching.heart import Heart


def wait_for(condition, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()


@pytest.fixture
def events():
    return []


@pytest.fixture
def heart(tmp_path, events):
    made = Heart(tmp_path, lambda: 7, events.append, silence=0.2)
    yield made
    made.close()


def test_the_last_activity_is_in_the_file(heart, tmp_path):
    lane = Lane([], lambda *_: None, Clock())
    heart.join(lane)
    assert read_heartbeat(tmp_path).activity is Activity.STARTED
    for hearers, arguments, activity in (
        (lane.at_fetch, ("loader 0", 4, 0.1), Activity.FETCHED),
        (lane.at_backward, ((), True, None), Activity.BACKWARD),
        (lane.at_backward_end, (), Activity.GRADIENTS),
        (lane.at_update_end, (None, None), Activity.UPDATED),
        (lane.at_validation, (), Activity.VALIDATED),
    ):
        lane.tell(hearers, *arguments)
        beat = read_heartbeat(tmp_path)
        assert (beat.step, beat.activity, beat.process) == (7, activity, os.getpid())
        assert beat.wall == pytest.approx(time.time(), abs=5)


def test_silence_is_told_once_with_the_line_of_the_script(heart, tmp_path, events):
    wait_for(lambda: (tmp_path / STACKS).exists() and events)
    time.sleep(0.3)
    (seen,) = events
    assert seen.where.startswith("test_heart.py:")
    assert seen.seconds >= 0.2
    assert seen.activity == "started"
    assert "wait_for" in (tmp_path / STACKS).read_text() or "test_silence" in seen.function
    assert read_heartbeat(tmp_path).silence > 0.1
    heart._beat(Activity.UPDATED)  # it goes on, and falls silent again
    wait_for(lambda: len(events) == 2)
    assert events[1].activity == "updated"


def test_nothing_waits_for_the_thread(heart):
    (thread,) = [each for each in threading.enumerate() if each.name == "holter heartbeat"]
    assert thread.daemon
    began = time.monotonic()
    heart.close()
    assert time.monotonic() - began < 0.05
    thread.join(5)
    assert not thread.is_alive()


def test_a_silence_that_is_not_set_follows_the_longest_pause(tmp_path, events):
    heart = Heart(tmp_path, lambda: 0, events.append)
    assert heart._limit == 120
    heart._updated()
    assert heart._limit == 20
    heart._longest = 60.0
    assert heart._limit == 600
    heart.close()
