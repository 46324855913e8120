"""Curves in one line."""

import numpy as np
import pytest

from holter.record.signals import LOSS
from holter.reports._sparklines import sparkline, sparklines
from synthetic import run_of


def line_of(values: list[float], width: int = 8) -> str:
    return sparkline(run_of({LOSS: {"": values}})[LOSS][""], width)


def test_a_falling_curve_falls() -> None:
    assert line_of([8, 7, 6, 5, 4, 3, 2, 1]) == "█▇▆▅▄▃▂▁"


def test_parts_that_are_not_finite_are_marked() -> None:
    assert line_of([2, 1, np.nan, 1], 4) == "█▁x▁"
    assert line_of([np.nan, np.inf]) == "xx"


def test_a_level_curve_is_level() -> None:
    assert line_of([3.0] * 5) == "▁▁▁▁▁"


@pytest.mark.parametrize("count", [1, 2, 1000])
def test_the_line_fits(count: int) -> None:
    assert len(line_of(list(range(count)), 20)) == min(count, 20)


def test_main_curves_have_a_name_and_their_ends() -> None:
    ((name, line),) = sparklines(run_of({LOSS: {"": [2.0, 1.0, 0.5]}}), 30)
    assert name == "loss"
    assert line == "       2 █▃▁ 0.5"
