"""Readings that are drawn: fewer than recorded, and no spike or NaN is lost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from holter.record.format import ABSENT, is_absent
from holter.record.signals import GRAD_NORM
from holter.reports.html._packing import Pack, as_json, rounded
from holter.reports.html._sampling import grid_of, thinned
from synthetic import run_of, series

VALUES = arrays.arrays(
    np.float32, st.integers(1, 400), elements=st.floats(width=32, allow_nan=True)
)


@settings(max_examples=60, deadline=None)
@given(VALUES, st.sampled_from([8, 20, 60]))
def test_extremes_and_odd_values_are_kept(values: np.ndarray, most: int) -> None:
    kept = thinned(series(values), most=most)
    assert kept.recorded == len(values)
    assert len(kept.steps) <= max(most * 5 // 2 + 2, len(values) if len(values) <= most else 0)
    assert (np.diff(kept.steps) > 0).all()
    assert np.array_equal(values[kept.steps], kept.values, equal_nan=True)
    assert kept.steps[0] == 0
    assert kept.steps[-1] == len(values) - 1
    finite = values[np.isfinite(values)]
    if len(finite):
        assert finite.min() in kept.values
        assert finite.max() in kept.values
    for is_odd in (np.isnan, np.isposinf, np.isneginf):
        assert is_odd(kept.values).any() == is_odd(values).any()


def test_the_mean_of_each_part_is_given() -> None:
    values = np.tile(np.array([1, 3], np.float32), 5_000)
    values[-1_000:] = np.nan
    kept = thinned(series(values), most=100)
    assert kept.middle is not None
    assert len(kept.middle) == 50
    assert np.allclose(kept.middle.values[:45], 2)
    assert np.isnan(kept.middle.values[45:]).all()
    assert thinned(series(values[:100]), most=100).middle is None


def test_a_nan_in_every_part_is_kept() -> None:
    values = np.ones(100_000, np.float32)
    values[::100] = np.nan
    kept = thinned(series(values), most=1000)
    assert np.isnan(kept.values).sum() == 500  # one of each part


def grid(rows: dict[str, list[float]]):
    return grid_of(run_of({GRAD_NORM: rows})[GRAD_NORM])


def test_a_short_table_is_drawn_as_it_is() -> None:
    made = grid({"a": [1, 2, 3], "b": [4, float("nan"), 6]})
    assert made.owners == ("a", "b")
    assert made.is_exact
    assert made.steps.tolist() == [0, 1, 2]
    assert np.array_equal(made.high, [[1, 2, 3], [4, np.nan, 6]], equal_nan=True)


def test_cells_hold_the_extremes() -> None:
    values = np.ones(10_000, np.float32)
    values[5_003] = 70
    values[5_004] = 0.01
    values[7_001] = np.inf
    values[9_001] = np.nan
    made = grid({"a": values})
    assert not made.is_exact
    assert len(made.steps) == 400
    at = np.searchsorted(made.steps, [5_003, 7_001, 9_001], "right") - 1
    assert made.high[0, at[0]] == 70
    assert made.low[0, at[0]] == np.float32(0.01)
    assert made.high[0, at[1]] == np.inf
    assert np.isnan(made.high[0, at[2]])
    assert not is_absent(made.high).any()
    assert np.isnan(made.high).sum() == 1


def test_owners_read_at_other_steps_have_holes() -> None:
    made = grid_of(
        run_of({GRAD_NORM: {"a": series([1, 2], [0, 2]), "b": series([5], [1])}})[GRAD_NORM]
    )
    assert made.steps.tolist() == [0, 1, 2]
    assert is_absent(made.high).tolist() == [[False, True, False], [True, False, True]]


def test_numbers_keep_three_digits() -> None:
    values = np.array([1.2345678, -3e-30, 3.4e38, 0, np.inf, -np.inf, np.nan], np.float32)
    kept = rounded(values)
    assert np.allclose(kept[:4], values[:4], rtol=1e-3)
    assert np.array_equal(kept[4:], values[4:], equal_nan=True)
    assert is_absent(rounded(np.array([ABSENT, np.nan], np.float32))).tolist() == [True, False]


def test_equal_arrays_are_stored_once() -> None:
    pack = Pack()
    first = pack.spelled({"steps": np.arange(5), "more": np.arange(5)})
    assert first["steps"] == first["more"]
    assert pack.spelled(np.arange(5, dtype=np.float32))["array"] == "f32"
    assert pack.spelled(np.array([2**40]))["array"] == "f64"


@pytest.mark.parametrize("name", ["</script><b>", "<!--", "a & b", "\udc80\u202e"])
def test_json_cannot_end_its_element(name: str) -> None:
    written = as_json(Pack().spelled({name: [name, float("nan")]}))
    assert not set("<>&") & set(written)
    written.encode()
