"""`holter check`, called as a user calls it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from recorded import write_run

from holter._cli import main

ONLY = ("--select", "nonfinite-loss")


def test_findings_give_exit_code_one(sick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(sick), *ONLY]) == 1
    said = capsys.readouterr()
    assert said.out.startswith("holter: broke at step 3. ")
    assert "\nERROR  cause unknown" in said.out
    assert f"holter check {sick} --all" in said.out
    assert said.err == ""


def test_nothing_found_gives_zero(healthy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(healthy), *ONLY]) == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith("holter: learned. loss ")
    assert "steps, no problem found; " in second
    assert third.startswith("details: holter check")


@pytest.mark.parametrize(("least", "code"), [("error", 1), ("info", 1), ("never", 0)])
def test_fail_on(least: str, code: int, sick: Path) -> None:
    assert main(["check", str(sick), *ONLY, "--fail-on", least]) == code


def test_the_newest_run_is_the_default(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, name in enumerate(("b", "a")):
        folder = write_run(here / "holter-runs" / name, [1.0, 0.5])
        os.utime(folder / "meta.json", (number, number))
    assert main(["check", *ONLY]) == 0
    said = capsys.readouterr()
    assert said.err == f"holter: checking the newest run, {Path('holter-runs/a')}\n"
    assert f"holter check {Path('holter-runs/a')} --all" in said.out


def test_no_run_at_all_is_one_sentence(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("holter: There is no run in ./holter-runs;")
    assert said.err.count("\n") == 1


def test_the_report_goes_to_a_file(sick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(sick), *ONLY, "--format", "json", "--output", "report.json"]) == 1
    assert capsys.readouterr().out == ""
    document = json.loads(Path("report.json").read_text())
    assert document["diagnosis"]["leading"]["rule"] == "nonfinite-loss"
    assert main(["check", str(sick), *ONLY, "--output", "no/such/folder"]) == 2
    assert "holter: Cannot write no" in capsys.readouterr().err


def test_verify_finds_a_damaged_record(sick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(sick), *ONLY, "--verify"]) == 1
    assert "holter: verified 5 records" in capsys.readouterr().err
    (segment,) = sick.glob("rank-0/steps-*.seg")
    data = bytearray(segment.read_bytes())
    data[4096 + 22] ^= 1  # in the reading of the first record
    segment.write_bytes(data)
    assert main(["check", str(sick), *ONLY, "--verify"]) == 2
    assert "damaged" in capsys.readouterr().err


def test_a_rank_that_is_not_there(sick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(sick), "--rank", "3"]) == 2
    assert "has no rank 3" in capsys.readouterr().err


def test_color_is_asked_for_by_the_environment(
    sick: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    main(["check", str(sick), *ONLY])
    assert "\x1b[1;31mERROR" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    main(["check", str(sick), *ONLY])
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("report", ["text", "json", "github", "sarif"])
def test_needs_no_torch(sick: Path, report: str) -> None:
    code = f"""
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError("torch is not installed here")

sys.meta_path.insert(0, Blocker())
from holter._cli import main
code = main(["check", {str(sick)!r}, "--format", {report!r}])
assert not [name for name in sys.modules if name.partition(".")[0] == "torch"]
sys.exit(code)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "nonfinite-loss" in done.stdout
