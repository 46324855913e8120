"""The runs below the folders that were given, and what is found while they grow."""

import math
import time
from pathlib import Path

import pytest
from shown_runs import extend, write_run

from holter.dashboard.library import Checked, Library
from holter.record import Writer
from holter.record.errors import HolterError


def names(library: Library) -> set[str]:
    return {entry.name for entry in library.entries()}


def checked(library: Library, name: str) -> Checked:
    return library.checked(next(each for each in library.entries() if each.name == name))


def test_runs_are_found_at_any_depth_but_not_inside_runs(tmp_path: Path) -> None:
    write_run(tmp_path / "one", [1.0])
    write_run(tmp_path / "deep" / "er" / "two", [1.0])
    write_run(tmp_path / "one" / "cures" / "trial", [1.0])
    write_run(tmp_path / ".hidden" / "three", [1.0])
    (tmp_path / "notes").mkdir()
    assert names(Library([tmp_path])) == {"one", "deep/er/two"}
    assert names(Library([tmp_path / "one"])) == {"one"}


def test_two_runs_of_one_name_have_their_own_identifiers(tmp_path: Path) -> None:
    write_run(tmp_path / "a" / "run", [1.0])
    write_run(tmp_path / "b" / "run", [1.0])
    found = Library([tmp_path / "a", tmp_path / "b", tmp_path / "a"]).entries()
    assert [entry.name for entry in found] == ["run", "run"]
    assert len({entry.id for entry in found}) == 2


def test_links_that_lead_out_are_not_followed(tmp_path: Path) -> None:
    write_run(tmp_path / "secret" / "run", [1.0])
    given = tmp_path / "given"
    write_run(given / "own", [1.0])
    write_run(given / "mixed", [1.0])
    (given / "linked").symlink_to(tmp_path / "secret" / "run")
    (given / "parent").symlink_to(tmp_path / "secret")
    (given / "mixed" / "meta.json").replace(tmp_path / "meta.json")
    (given / "mixed" / "meta.json").symlink_to(tmp_path / "meta.json")
    (given / "borrowed").mkdir()
    (given / "borrowed" / "rank-0").symlink_to(tmp_path / "secret" / "run" / "rank-0")
    assert names(Library([given])) == {"own"}


def test_a_folder_that_is_missing_is_an_error() -> None:
    with pytest.raises(HolterError, match="no folder"):
        Library([Path("nowhere")])


def test_a_damaged_run_is_listed_with_the_reason(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [1.0, 2.0])
    (segment,) = (folder / "rank-0").glob("steps-*.seg")
    segment.write_bytes(b"no header" * 1000)
    assert checked(Library([tmp_path]), "run").summary.error


def test_a_checkup_is_made_again_when_the_run_has_grown(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "run", status="running")
    extend(writer, [2.0 * 0.99**step for step in range(50)])
    library = Library([tmp_path])
    first = checked(library, "run")
    assert first.summary.status == "running"
    assert checked(library, "run") is first
    extend(writer, [2.0 * 0.99**step for step in range(50, 80)], first=50)
    writer.close()
    deadline = time.monotonic() + 20
    while checked(library, "run").summary.steps < 80:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_what_appears_while_a_run_is_shown_is_an_alert(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "run", status="running")
    extend(writer, [2.0 * 0.98**step for step in range(60)])
    library = Library([tmp_path])
    checked(library, "run")
    assert library.alerts() == []
    extend(writer, [math.nan] * 5, first=60)
    writer.close()
    deadline = time.monotonic() + 20
    while not library.alerts():
        assert time.monotonic() < deadline
        checked(library, "run")
        time.sleep(0.1)
    rules = [alert.finding.rule for alert in library.alerts()]
    assert "nonfinite-loss" in rules
    assert len(rules) == len(set(rules))


def test_what_was_there_before_is_no_alert(tmp_path: Path) -> None:
    write_run(tmp_path / "run", [1.0, math.nan, math.nan])
    library = Library([tmp_path])
    assert checked(library, "run").checkup.findings
    assert library.alerts() == []
