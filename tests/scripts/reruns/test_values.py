"""The line of a script that made a value, found by following its lines."""

import math
import random
import sys
from collections.abc import Callable

import numpy as np
import torch

from holter.record.births import Birth
from holter.scripts.reruns.values import ValueTrace

LAST = 20


def followed(script: Callable[[list[float]], None], *, of_setting: bool) -> Birth | None:
    """Run a script line by line; it appends the learning rate of each step."""
    rates: list[float] = []
    trace = ValueTrace(lambda: len(rates), lambda: rates[-1:])
    before = sys.gettrace()
    trace.begin()
    try:
        with np.errstate(all="ignore"):
            script(rates)
    finally:
        sys.settrace(before)
    return trace.birth(of_setting=of_setting)


def polynomial(step: int) -> float:
    return float(np.power(1 - step / LAST, 0.9))


def schedule(rates: list[float]) -> None:
    for step in range(LAST + 2):
        rate = 0.1 * polynomial(step)
        rates.append(rate)


def rewards(rates: list[float]) -> None:
    memory, best = [], -math.inf
    mask = torch.zeros(3)
    for step in range(LAST):
        scores = torch.log(mask)
        gap = torch.tensor(float(LAST - 5 - step)).clamp_min(0)
        reward = 1 - torch.log(gap)
        memory.append((scores.shape, reward))
        drawn = random.choice(memory)[1]
        best = max(best, float(drawn))
        rates.append(0.1)


def healthy(rates: list[float]) -> None:
    lowest = math.inf
    for step in range(LAST):
        lowest = min(lowest, 1 / (step + 1))
        rates.append(lowest)


def test_the_schedule_is_named_not_the_line_that_uses_it() -> None:
    found = followed(schedule, of_setting=True)
    assert found is not None
    assert "np.power" in found.line
    assert (found.operation, found.kind, found.reaches) == ("pow", "outside domain", "setting")


def test_the_line_that_filled_a_buffer_is_named_not_a_mask() -> None:
    found = followed(rewards, of_setting=False)
    assert found is not None
    assert found.line == "reward = 1 - torch.log(gap)"
    assert (found.operation, found.kind, found.reaches) == ("log", "log of zero", "input")


def test_an_infinity_that_is_meant_is_no_birth() -> None:
    assert followed(healthy, of_setting=True) is None
    assert followed(healthy, of_setting=False) is None
