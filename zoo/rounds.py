"""Blind rounds: scripts whose authors had not seen holter, with the truths they wrote first.

Each folder of `zoo/blind` is one round: healthy scripts, and in `truths.json` the faults as edits
of them, with the author's own words. `causes` are the rules that say the same; they were chosen
from these words before the round was measured. Rules that came later are appended. Rounds of
scripts that break (failures, f2, f3) are for `bench.blind_failures`.
"""

import json
from pathlib import Path

from zoo.specimens import Specimen

BLIND = Path(__file__).parent / "blind"


def rounds() -> tuple[str, ...]:
    """The names of all rounds of edits."""
    return tuple(
        sorted(
            path.parent.name
            for path in BLIND.glob("*/truths.json")
            if any(path.parent.glob("base_*.py"))
        )
    )


def specimens_of(name: str) -> tuple[Specimen, ...]:
    """The faults and the healthy scripts of a round; the latter are clear of every rule."""
    folder = BLIND / name
    truths = json.loads((folder / "truths.json").read_text())
    faults = [
        Specimen(
            f"{name}-{truth['name']}",
            f"blind/{name}/{truth['base']}",
            tuple((old, new) for old, new in truth["replace"]),
            truth["truth"],
            cause=truth["causes"][0],
            accepts=tuple(truth["causes"][1:]),
        )
        for truth in truths
    ]
    healthy = [
        Specimen(f"{name}-{path.stem}", f"blind/{name}/{path.stem}", (), "a healthy script")
        for path in sorted(folder.glob("*.py"))
    ]
    return (*faults, *healthy)


def visibly_bad(name: str) -> set[str]:
    """The faults of a round whose failure the script's own figures show."""
    truths = json.loads((BLIND / name / "truths.json").read_text())
    return {f"{name}-{truth['name']}" for truth in truths if truth["visible"]}
