"""Losses that grow or fall by orders of magnitude without ever leaving their band at once."""

from collections.abc import Sequence

import numpy as np
import pytest

from holter.watching.blackbox.alarms import Alarm, Alarms


def alarms(losses: Sequence[float] | np.ndarray, *, at_once: int) -> list[Alarm]:
    """See losses as the black box does: those in the band a bunch at a time."""
    seen, found, step = Alarms(), [], 0
    values = [float(loss) for loss in losses]
    while step < len(values):
        usual = seen.see_usual_losses(step, values[step : step + at_once]) if at_once else 0
        step += usual
        if not usual:
            found.append(seen.see_loss(step, values[step]))
            step += 1
    return [alarm for alarm in found if alarm is not None]


def wide(size: np.ndarray) -> np.ndarray:
    """Return losses of a size, with a spread as wide as they are high: no band is left."""
    return size * np.abs(np.random.default_rng(0).normal(1, 0.8, len(size)))


@pytest.mark.parametrize("at_once", [0, 40])
def test_a_loss_that_grows_slowly_by_orders_of_magnitude(at_once: int) -> None:
    losses = wide(0.1 * 1.02 ** np.arange(1200))
    (growth,) = [each for each in alarms(losses, at_once=at_once) if each.kind == "growth"]
    assert 300 < growth.step < 700
    assert "grew to" in growth.says


@pytest.mark.parametrize("at_once", [0, 40])
def test_a_loss_that_falls_without_end(at_once: int) -> None:
    (fall,) = alarms(-np.geomspace(1, 1e4, 1000), at_once=at_once)
    assert fall.kind == "descent"
    assert "fell to" in fall.says


@pytest.mark.parametrize(
    "losses",
    [
        -np.linspace(1, 60, 1000),  # the likelihood of a narrow density
        wide(0.1 * np.linspace(1, 50, 1000)),  # a task that gets harder
        np.linspace(5, 0.01, 1000),
        np.zeros(400),
    ],
)
def test_other_losses_are_left_alone(losses: np.ndarray) -> None:
    assert not [each for each in alarms(losses, at_once=40) if each.kind != "spike"]
