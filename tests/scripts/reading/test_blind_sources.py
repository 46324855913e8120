"""Patterns in the sources of all blind rounds: none in a healthy script."""

import pytest

from holter.scripts.reading import read
from zoo.rounds import rounds, specimens_of


@pytest.mark.parametrize("round_", rounds())
def test_healthy_scripts_have_no_pattern(round_: str) -> None:
    found = {
        specimen.name: patterns
        for specimen in specimens_of(round_)
        if specimen.healthy and (patterns := read(specimen.script))
    }
    assert found == {}


def test_mistakes_of_several_rounds_are_read() -> None:
    named = [
        specimen.name
        for round_ in rounds()
        for specimen in specimens_of(round_)
        if not specimen.healthy and read(specimen.script)
    ]
    assert len(named) >= 30
