"""The norms that a replay clips gradients at."""

import math

from holter.lab.replay.planning import clip_norms


def test_one_and_a_tenth_where_ordinary_gradients_are_about_as_large() -> None:
    assert clip_norms([0.8] * 20) == (1.0, 0.1)
    assert clip_norms([30.0] * 20) == (1.0, 0.1)


def test_a_typical_norm_where_one_would_never_be_reached() -> None:
    assert clip_norms([0.021, 0.02, 0.018] * 5) == (1.0, 0.02)


def test_too_few_norms_tell_nothing() -> None:
    assert clip_norms([0.02] * 3) == (1.0,)
    assert clip_norms([math.nan, math.inf, 0.0] * 9) == (1.0,)
