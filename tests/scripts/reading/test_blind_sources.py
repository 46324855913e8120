"""Patterns in the sources of all blind rounds and of zoo/unrun: none in a healthy script."""

from pathlib import Path

import pytest

from bench.reading import edited
from holter.scripts.reading import read
from zoo.rounds import rounds, specimens_of

UNRUN = sorted((Path(__file__).parents[3] / "zoo" / "unrun").glob("*/truths.json"))


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


@pytest.mark.parametrize("truths", UNRUN, ids=lambda path: path.parent.name)
def test_sources_that_nobody_runs(truths: Path) -> None:
    folder = truths.parent
    assert not {
        path.name: found for path in folder.glob("*.py") if (found := read(path.read_text()))
    }
    every = list(edited(folder))
    assert not [each for each in every if each.patterns and not each.is_fault]
    assert sum(bool(each.patterns) for each in every) >= 40
