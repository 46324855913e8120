"""How long steps take on a GPU: windows between marks, here on a clock of the test."""

from dataclasses import dataclass

import pytest

from holter.record.signals import TIME_DEVICE_IDLE
from holter.watching.collectors import STEP
from holter.watching.collectors.lane import Clock, Lane
from holter.watching.step_lengths import StepLengths


@dataclass
class Mark:
    """An event that the GPU has passed at some time."""

    at: float
    has_passed: bool = True

    def query(self) -> bool:
        return self.has_passed

    def elapsed_time(self, later: "Mark") -> float:
        return 1e3 * (later.at - self.at)


class Training:
    """Steps of some length on a GPU, in seconds."""

    def __init__(self) -> None:
        self.now, self.passed = 0.0, True
        self.lengths = StepLengths(lambda: Mark(self.now, self.passed))
        self.lengths.step_begins(is_light=True, is_dense=False)

    def light(self, number: int, *, length: float = 0.02, dense: bool = False) -> None:
        for _ in range(number):
            self.now += length
            self.lengths.step_begins(is_light=True, is_dense=dense)


def test_a_deep_step_costs_what_the_gpu_took_longer():
    training = Training()
    training.light(20)
    assert training.lengths.of_light == pytest.approx(0.02)
    training.now += 0.025  # its forward pass, in the step before
    training.lengths.step_begins(is_light=False, is_dense=False)
    training.now += 0.022
    window = training.lengths.window(next_is_light=True)
    assert window is not None
    assert window.stretch() is None  # it has not ended
    training.light(1, length=0.0)
    assert window.stretch() == pytest.approx(0.007)


def test_what_hides_behind_the_gpu_costs_nothing():
    training = Training()
    training.light(20)
    training.now += 0.019
    training.lengths.step_begins(is_light=False, is_dense=False)
    training.now += 0.02
    window = training.lengths.window(next_is_light=True)
    training.light(1, length=0.0)
    assert window is not None
    assert window.stretch() == 0.0


def test_deep_steps_that_follow_each_other_share_their_windows():
    training = Training()
    training.light(20)
    windows = []
    for _ in range(4):
        training.now += 0.03
        training.lengths.step_begins(is_light=False, is_dense=False)
        windows.append(training.lengths.window(next_is_light=False))
    training.now += 0.03
    training.lengths.step_begins(is_light=False, is_dense=False)
    assert [each.stretch() for each in windows if each][2:] == pytest.approx([0.01, 0.01])


def test_a_fused_launch_is_compared_with_light_steps_without_one():
    training = Training()
    training.light(20)
    assert training.lengths.of_dense_launch is None
    for _ in range(8):
        training.light(1, dense=True)
        training.light(1, length=0.021)
    assert training.lengths.of_dense_launch == pytest.approx(0.001)


def test_nothing_is_known_of_a_gpu_that_is_behind():
    training = Training()
    training.passed = False
    training.light(40)
    assert training.lengths.of_light is None


def test_collectors_and_the_budget_ask_for_the_same_place():
    lane = Lane((), lambda *_: None, Clock())
    first, again = (lane.places(TIME_DEVICE_IDLE) for _ in range(2))
    assert first[STEP] == again[STEP]
    assert len(lane.row) == 1
