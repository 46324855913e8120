"""The highest loss that is still normal around a failure."""

import math

from holter.lab.replay.failing import peak_before
from holter.lab.replay.outcomes import ReplayTrial, StepOutcome


def trial(*losses: float) -> ReplayTrial:
    outcomes = tuple(StepOutcome(loss, 1.0, spoiled=False, kind=0) for loss in losses)
    return ReplayTrial(tuple(range(len(losses))), outcomes)


def test_it_is_that_of_the_later_half() -> None:
    assert peak_before(trial(9, 8, 7, 6, 1, 3, 2, 1, math.nan), 8, 8) == 3


def test_a_finite_loss_of_the_failing_step_is_normal_if_nothing_led_there() -> None:
    losses = [1.0, 1, 1, 1, 1, 1, 1, 1, 2]
    assert peak_before(trial(*losses), 8, 8) == 2
    assert peak_before(trial(*losses), 8, 7) == 1


def test_nothing_was_before() -> None:
    assert peak_before(trial(math.nan), 0, 0) is None
