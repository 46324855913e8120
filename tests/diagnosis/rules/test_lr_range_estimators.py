"""Curves over the learning rate, made by hand: what estimators say, and when nothing is said."""

from dataclasses import replace

import numpy as np
import pytest

from holter.diagnosis.facts.rate_range import RangeTest, RateTrial
from holter.diagnosis.facts.sweep import ESTIMATORS, smooth
from sweeps import LADDER, START, falling, range_test, trained


def test_what_is_not_finite_spreads_nowhere() -> None:
    values = np.linspace(1, 0, 50)
    values[[10, 11, 30]] = np.nan, np.inf, -np.inf
    assert np.isfinite(smooth(values)).all()
    np.testing.assert_allclose(smooth(values), np.linspace(1, 0, 50), atol=0.05)
    assert np.isnan(smooth(np.full(20, np.nan))).all()


def test_a_spike_is_not_followed() -> None:
    values = np.linspace(1, 0, 50)
    values[20:22] = 100
    assert smooth(values).max() < 1.1


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_are_near_the_fall(name: str) -> None:
    rates = range_test().rates(name)
    assert all(3e-4 < rate < 3e-2 for rate in rates)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(("scale", "offset"), [(1000.0, 0.0), (1.0, -50.0), (1e-4, 3.0)])
def test_estimators_know_no_scale(name: str, scale: float, offset: float) -> None:
    told, same = (
        ESTIMATORS[name](each) for each in (falling(), falling(scale=scale, offset=offset))
    )
    assert told == pytest.approx(same)


def test_the_edge() -> None:
    assert 0.1 < falling(edge=0.1).diverges < 0.3
    assert falling(edge=100.0).diverges == np.inf


def test_a_loss_that_ends_with_nan_diverges_there() -> None:
    sweep = falling(edge=100.0)
    held = sweep.held.copy()
    held[90:] = np.nan
    assert replace(sweep, held=held).diverges == pytest.approx(LADDER[90])


def test_sweeps_alone() -> None:
    test = range_test()
    assert test.problem == ""
    assert 1e-3 < test.suggestion.rate < 1e-2
    assert test.suggestion.low <= test.suggestion.rate <= test.suggestion.high


def test_the_centre_of_what_is_nearly_as_good() -> None:
    test = range_test(trials=trained(a1e_4=1.8, a2e_4=1.22, a4e_4=1.2, a8e_4=1.22, a16e_4=1.8))
    assert 3e-4 < test.suggestion.rate <= 4e-4
    assert 1e-4 < test.suggestion.low < 2e-4
    assert 8e-4 < test.suggestion.high < 16e-4


def test_nothing_is_claimed_of_a_gap() -> None:
    trials = trained(a1e_3=1.3, a2e_3=1.2, a4e_3=1.2, a1e0=9.0)
    assert range_test(trials=trials).suggestion.high == pytest.approx(4e-3)


def test_between_two_hills_is_no_suggestion() -> None:
    test = range_test(trials=trained(a1e_4=1.3, a2e_4=1.2, a4e_4=2.0, a8e_4=1.21, a16e_4=1.3))
    assert 1.5e-4 < test.suggestion.rate <= 2e-4


def test_a_training_that_fails_counts_for_nothing() -> None:
    trials = (*trained(a1e_3=1.3, a2e_3=1.2), RateTrial("confirm 0.004", 4e-3, np.full(4, np.inf)))
    assert range_test(trials=trials).suggestion.rate < 2.5e-3


def with_held(change: object, **more: float) -> RangeTest:
    return RangeTest(START, tuple(replace(falling(seed=s), **change) for s in range(3)), **more)


@pytest.mark.parametrize(
    ("test", "word"),
    [
        (range_test(moved=0.0), "no weight"),
        (RangeTest(np.array([1.0, np.nan]), (falling(),)), "before any step"),
        (RangeTest(START, ()), "no step"),
        (with_held({"held": np.full(90, np.nan), "rates": LADDER[:90]}), "lowest rate"),
        (
            with_held({"held": np.full(4, 9.0), "rates": LADDER[:4], "errors": np.full(4, 0.1)}),
            "start lower",
        ),
        (
            with_held(
                {"held": np.full(90, 2.14), "rates": LADDER[:90], "errors": np.full(90, 0.02)}
            ),
            "noise",
        ),
        (
            RangeTest(START, (falling(middle=1e-4), falling(middle=1e-2), falling(middle=1e-3))),
            "agree",
        ),
    ],
)
def test_reasons_to_say_nothing(test: RangeTest, word: str) -> None:
    assert word in test.problem


def test_trials_that_gain_nothing_are_a_reason_too() -> None:
    rng = np.random.default_rng(0)
    none = tuple(
        RateTrial(f"confirm {rate}", rate, START + 0.1 * rng.normal(size=4))
        for rate in (1e-3, 2e-3)
    )
    assert "noise" in range_test(trials=none).problem
