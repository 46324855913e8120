"""`holter check` on logs of other tools, and its options for programs."""

import json
from pathlib import Path

import jsonschema
import pytest

from holter._cli import main


@pytest.fixture
def table(here: Path) -> Path:
    rows = "".join(f"{step},{2 / (step + 1)},1\n" for step in range(60))
    (here / "log.csv").write_text(f"step,objective,other\n{rows}")
    return here / "log.csv"


def test_a_log_is_recognised(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "train.log").write_text("".join(f"step {n}: loss {2 / (n + 1)}\n" for n in range(60)))
    assert main(["check", "train.log"]) == 0
    said = capsys.readouterr()
    assert said.err == "holter: imported train.log (text log): loss from loss\n"
    assert said.out.startswith("holter: learned. loss ")
    found = "no problem found in what the log holds"
    assert found in said.out
    assert " not examined; " in " ".join(said.out.split())
    assert "`holter run train.py` records" in said.out
    assert "holter check train.log --all" in said.out
    assert [path.name for path in here.iterdir()] == ["train.log"]


def test_names_are_mapped(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(table)]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert "--map loss=NAME" in said.err
    assert main(["check", str(table), "--map", "loss=objective", "--save", "kept"]) == 0
    assert "loss from objective; ignored other" in capsys.readouterr().err
    assert main(["check", "kept"]) == 0
    assert "in what the log holds" in capsys.readouterr().out


def test_options_of_the_other_kind_are_refused(
    healthy: Path, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(healthy), "--map", "loss=x"]) == 2
    assert "for logs of other tools" in capsys.readouterr().err
    assert main(["check", str(table), "--map", "loss=objective", "--verify"]) == 2
    assert "for runs of holter" in capsys.readouterr().err


def test_programs_get_the_schema_the_readings_and_the_next_command(
    sick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    main(["check", str(sick), "--format", "json", "--evidence"])
    document = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(schema).validate(document)
    (evidence, *_) = document["diagnosis"]["leading"]["evidence"]
    assert evidence["readings"]["values"][-1] == "nan"
    assert len(evidence["readings"]["steps"]) == len(evidence["readings"]["values"])
    assert document["next"] == "holter doctor train.py"
    assert document["run"]["source"] is None
    main(["check", str(sick), "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert document["diagnosis"]["leading"]["evidence"][0]["readings"] is None


def test_a_log_as_json(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", str(table), "--map", "loss=objective", "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert document["run"]["source"]["names"] == {"loss": "objective"}
    assert document["run"]["ranks"] == [0]
    assert document["next"] == "holter run train.py"
