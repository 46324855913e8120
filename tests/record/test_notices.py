"""Lines of progress: as wide as the terminal at most, with a bar where there is room."""

import pytest

from holter.record.notices import line_of


@pytest.mark.parametrize("columns", [0, 1, 20, 40, 80, 200])
def test_a_line_never_wraps(columns: int) -> None:
    for share in (None, 0.0, 0.3, 1.0, 7.0):
        assert len(line_of("experiment 3/16: lr-range · sweep 12/100", share, columns)) <= max(
            columns - 1, 0
        )


def test_a_bar_shows_the_share() -> None:
    half = line_of("sweep 50/100", 0.5, 100)
    assert half == f"holter: {'━' * 12}{'─' * 12} sweep 50/100"
    assert line_of("x", 1.0, 100, encoding="ascii").count("#") == 24
    assert line_of("sweep", 0.5, 30) == "holter: sweep"
