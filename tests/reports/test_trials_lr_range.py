"""What is told of a learning-rate range test: numbers, in the width given."""

import numpy as np
import pytest

from holter.record import Run
from holter.reports._lines import painted
from holter.reports.experiments import lr_range
from sweeps import ENDS, run_with
from synthetic import run_of


def shown(run: Run, width: int = 96) -> str:
    text = painted(lr_range.lines(run, width), color=False)
    assert max(map(len, text.splitlines()), default=0) <= width
    return text


def test_nothing_is_told_of_other_runs() -> None:
    assert shown(run_of({})) == ""


@pytest.mark.parametrize("width", [60, 96])
def test_a_suggestion_with_all_that_led_to_it(width: int) -> None:
    text = shown(run_with(1e-3, notes=("the loader does not shuffle",)), width)
    assert "0.0023" in text
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
    assert ("not finite" in text) == np.isinf(end)
    assert "-" not in text.partition("configured")[2].partition("\n")[0]


def test_no_suggestion() -> None:
    text = shown(run_with(1e-3, moved=0.0))
    assert "no weight changes" in text
    assert "▲" not in text


def test_a_loss_that_never_diverges() -> None:
    assert "not up to" in shown(run_with(1e-3, edge=100.0))
