"""What is shown of a learning-rate range test."""

import numpy as np
import pytest
from tabled import shown, table

from sweeps import ENDS, run_with


@pytest.mark.parametrize("width", [60, 96])
def test_a_suggestion_with_all_that_led_to_it(width: int) -> None:
    run = run_with(1e-3, notes=("the loader does not shuffle",))
    text = shown(run, width)
    name, rate, _ = table(run, "learning-rate range test").rows[0]
    assert (name, round(rate, 4)) == ("suggestion", 0.0023)
    assert "steepest" in text
    assert "does not shuffle" in text
    assert text.count("diverged") == 3
    assert text.count("configured") == 2
    assert "├" in text and "▲" in text and "┤" in text


def test_without_short_trainings() -> None:
    assert "over 3 sweeps" in shown(run_with(1e-3, tried=False))


@pytest.mark.parametrize("end", [np.inf, 4.0])
def test_a_configured_rate_that_fails(end: float) -> None:
    text = shown(run_with(0.2, ends=ENDS | {0.2: end}))
    assert ("non-finite" in text) == np.isinf(end)
    configured = table(run_with(0.2, ends=ENDS | {0.2: end}), "learning-rate range test").rows[1]
    assert configured[:2] == ("configured", pytest.approx(0.2))
    assert "gain" not in configured[2]


def test_no_suggestion() -> None:
    text = shown(run_with(1e-3, moved=0.0))
    assert "no weight changes" in text
    assert "▲" not in text


def test_a_loss_that_never_diverges() -> None:
    assert "not up to" in shown(run_with(1e-3, edge=100.0))
