"""Which learning rates a range test tries next."""

from dataclasses import replace

import numpy as np
import pytest

from holter.diagnosis.facts.rate_range import RangeTest
from holter.lab.experiments._learning_rates.planning import another, candidates, worth_sweeping
from sweeps import LADDER, START, falling, range_test, trained


def test_candidates_lie_about_the_suggestion() -> None:
    test = range_test()
    rates = candidates(test, 5)
    assert rates[2] == pytest.approx(test.centre)
    np.testing.assert_allclose(np.diff(np.log2(rates)), 1)


def test_candidates_are_far_apart_where_sweeps_say_nothing() -> None:
    sweep = falling()
    flat = replace(sweep, held=np.maximum(sweep.held, sweep.start - 0.01))
    rates = candidates(RangeTest(START, (flat,)), 5)
    assert rates[0] < 1e-3 < rates[-1] < flat.diverges
    assert rates[1] / rates[0] > 3


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ({"a1e_3": 1.2, "a2e_3": 1.3, "a4e_3": 1.4}, 5e-4),
        ({"a1e_3": 1.4, "a2e_3": 1.3, "a4e_3": 1.2}, 8e-3),
        ({"a1e_3": 1.4, "a2e_3": 1.2, "a4e_3": 1.3}, None),
        ({"a1e_3": 1.3, "a1e_2": 1.2, "a1e_1": 1.4}, 10**-2.5),
    ],
)
def test_which_rate_is_tried_next(levels: dict[str, float], expected: float | None) -> None:
    found = another(range_test(trials=trained(**levels)))
    assert found == (None if expected is None else pytest.approx(expected))


def test_later_sweeps_leave_out_what_showed_nothing() -> None:
    rates = worth_sweeping(LADDER, falling())
    assert 1e-5 < rates[0] < 3e-4
    assert rates[-1] == LADDER[-1]
