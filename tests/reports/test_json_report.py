"""The JSON report keeps to the schema that is shipped with it."""

import json
import math
import platform
from dataclasses import replace
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from situations import SITUATIONS, run

import holter
from holter import Series
from holter.diagnosis.engine import Checkup
from holter.record import Event
from holter.record.births import Birth
from holter.record.events import (
    BirthFound,
    ChangesTried,
    ChangeTried,
    Occurrence,
    Reproduced,
    TriageMade,
    WindowMeasure,
)
from holter.record.findings import Confidence, Level, Normal, Severity
from holter.record.signals import REPLAY_LOSS, REPLAY_NORM
from holter.record.typed import from_json
from holter.reports import json as json_report

SCHEMA = json.loads((files("holter.reports") / "schema-3.json").read_text())


def rendered(situation: str) -> dict[str, Any]:
    def refuse(token: str) -> None:
        raise AssertionError(f"{token} is not JSON")

    text = json_report.render(*SITUATIONS[situation])
    document: dict[str, Any] = json.loads(text, parse_constant=refuse)
    return document


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_keeps_to_the_schema(situation: str) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(rendered(situation))


def test_the_schema_knows_all_that_is_printed_and_all_words() -> None:
    document, defs = rendered("known"), SCHEMA["$defs"]
    assert set(document) == set(SCHEMA["properties"])
    for name in ("run", "outcome", "diagnosis", "cost"):
        assert set(document[name]) == set(defs[name]["properties"])
    assert set(document["findings"][0]) == set(defs["finding"]["properties"])
    assert set(document["normal"][0]) == set(defs["normal"]["properties"])
    assert set(document["findings"][0]["evidence"][0]) == set(defs["evidence"]["properties"])
    for key, enum in (("severity", Severity), ("confidence", Confidence), ("level", Level)):
        assert set(defs["finding"]["properties"][key]["enum"]) == {str(each) for each in enum}


def test_a_replay_has_its_fields() -> None:
    assert rendered("known")["replay"] is None
    reproduction = Reproduced("bit for bit", "it is said", 59, 57, 33, "nonfinite", 26, 26)
    born = from_json(Birth, {"operation": "log", "kind": "log of zero", "samples": [3]})
    told = replay_of(
        reproduction,
        BirthFound(born, 59),
        ChangeTried("float32", why_not="everything is in float32 already"),
        ChangeTried("step skipped", measure=WindowMeasure(late_loss=1.0)),
        ChangesTried(),
        TriageMade(True, False, (3,)),
    )
    for name in ("reproduction", "birth", "triage"):
        assert set(told[name]) == set(SCHEMA["$defs"][name]["properties"])
    assert set(told) == set(SCHEMA["$defs"]["replay"]["properties"])
    assert told["reproduction"]["identical"] == told["reproduction"]["compared"] == 26
    assert told["reproduction"]["departs_at"] is None
    assert told["birth"]["samples"] == [3]
    assert [change["outcome"] for change in told["ladder"]] == ["not applicable", "cures"]
    assert told["smallest_cure"] == "step skipped"
    assert told["triage"]["says"].startswith("data")


def test_a_replay_that_departs_names_no_cure() -> None:
    told = replay_of(
        replace(
            Reproduced("not reproduced", "it is said", 59, 59, 33, "nonfinite", 2, 26),
            departs_at=35,
            tensor="0.weight",
            suspects=("code between the steps",),
        ),
        ChangeTried("step skipped", measure=WindowMeasure(late_loss=1.0)),
        ChangesTried(),
    )
    assert told["reproduction"]["departs_at"] == 35
    assert told["reproduction"]["tensor"] == "0.weight"
    assert told["reproduction"]["suspects"] == ["code between the steps"]
    assert told["smallest_cure"] is None


def replay_of(*occurrences: Occurrence) -> dict[str, Any]:
    series = Series(np.arange(33, 60), np.ones(27, np.float32))
    tables = {REPLAY_LOSS: {"unchanged": series}, REPLAY_NORM: {"unchanged": series}}
    made = holter.Run.of(tables, events=[Event(0, 0.0, what) for what in occurrences])
    document = json.loads(json_report.render(made, holter.check(made)))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    told: dict[str, Any] = document["replay"]
    return told


def test_tells_the_cause_and_what_it_explains() -> None:
    diagnosis = rendered("known")["diagnosis"]
    assert diagnosis["leading"]["rule"] == "outside-optimizer"
    assert diagnosis["known"] is True
    assert [each["rule"] for each in diagnosis["explains"]] == ["flat-curve"]
    assert [each["rule"] for each in diagnosis["others"]] == ["odd-norms"]
    assert [each["rule"] for each in diagnosis["ruled_out"]] == ["tiny-rate", "zero-gradients"]
    assert [each["rule"] for each in diagnosis["unexamined"]] == ["same-batches", "skipped-updates"]


def test_the_outcome_is_told() -> None:
    assert rendered("known")["outcome"]["state"] == "learned nothing"
    assert rendered("known")["outcome"]["bad"] is True
    assert rendered("nothing")["outcome"]["bad"] is False


def test_an_exception_of_a_rule_is_named() -> None:
    harmless = Normal("odd-norms", "the loss is back", exception="no-damage")
    (told,) = json.loads(json_report.render(run(), Checkup(normal=(harmless,))))["normal"]
    assert told["exception"] == "no-damage"
    assert rendered("known")["normal"][0]["exception"] is None


def test_abstains() -> None:
    assert rendered("unknown")["diagnosis"]["known"] is False
    assert rendered("nothing")["diagnosis"]["leading"] is None


def test_cost_is_measured_or_null() -> None:
    cost = rendered("known")["cost"]
    assert cost["seconds"] == pytest.approx(0.21)
    assert cost["share"] == pytest.approx(0.007)
    assert rendered("no-steps")["cost"] == {"seconds": None, "share": None}


def test_numbers_that_json_lacks_are_strings() -> None:
    document = json.loads(json_report.render(run(seed=math.nan), SITUATIONS["nothing"][1]))
    assert document["run"]["seed"] == "nan"


def test_a_recorded_run_names_its_versions_and_machine(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(4, 2)).mean().backward()
            optimizer.step()
    recorded = holter.Run.load(tmp_path / "run")
    document = json.loads(json_report.render(recorded, holter.check(recorded)))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    about = document["run"]
    assert about["torch"] == version("torch")
    assert about["host"] == platform.node()
    assert about["python"] == platform.python_version()
    assert about["seed"] == torch.initial_seed()
    assert (about["status"], about["steps"]) == ("finished", 3)
    assert about["model"] == [
        {
            "name": "Linear",
            "class": "Linear",
            "parameters": 3,
            "trainable": 3,
            "mode_dependent_modules": 0,
        }
    ]
