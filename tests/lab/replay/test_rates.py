"""Learning rates that rise until a training fails."""

import numpy as np
import pytest

from holter.lab.replay.rates import EarlierRate, earlier_rate
from holter.record.signals import LR
from synthetic import run_of

STEPS = np.arange(100)


@pytest.mark.parametrize(
    ("rates", "share"),
    [
        ((STEPS + 1) / 100, 0.5),
        (0.1 * 2.0 ** (STEPS // 20) * (1 - 0.005 * (STEPS % 20)), 1 / 4),  # raised in each epoch
    ],
)
def test_a_rate_that_never_stops_rising(rates: np.ndarray, share: float) -> None:
    found = earlier_rate(run_of({LR: {"": rates}}), 99)
    assert found is not None
    assert found.share == pytest.approx(share, rel=0.12)


@pytest.mark.parametrize(
    "rates",
    [
        np.full(100, 0.1),
        np.minimum((STEPS + 1) / 60, 1),  # a warm-up that ended
        0.1 + 0.09 * np.sin(STEPS / 5),  # cycles
        0.1 * 0.99**STEPS,
    ],
)
def test_other_schedules(rates: np.ndarray) -> None:
    found: EarlierRate | None = earlier_rate(run_of({LR: {"": rates}}), 99)
    assert found is None
