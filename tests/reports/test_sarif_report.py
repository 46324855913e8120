"""SARIF 2.1.0: what the standard says of the properties in use, and no other property."""

import dataclasses
import json
import re
from typing import Any

import jsonschema
import pytest
from situations import FLAT, ODD, RULES, SITUATIONS, run

from holter.diagnosis.engine import Checkup
from holter.record.meta import Environment
from holter.reports import sarif


def closed(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    """Return the schema of an object that has nothing else."""
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


TEXT = closed({"text": {"type": "string", "minLength": 1}}, markdown={"type": "string"})
LEVEL = {"enum": ["none", "note", "warning", "error"]}
BAG = {"type": "object"}
RULE = closed(
    {"id": {"type": "string"}},
    shortDescription=TEXT,
    help=TEXT,
    defaultConfiguration=closed({"level": LEVEL}),
    properties=BAG,
)
LOCATION = closed(
    {
        "physicalLocation": closed(
            {
                "artifactLocation": closed(
                    {"uri": {"type": "string", "format": "uri-reference"}},
                    uriBaseId={"type": "string"},
                ),
                "region": closed({"startLine": {"type": "integer", "minimum": 1}}),
            }
        )
    }
)
RESULT = closed(
    {"message": TEXT, "ruleId": {"type": "string"}},
    ruleIndex={"type": "integer", "minimum": -1},
    level=LEVEL,
    locations={"type": "array", "items": LOCATION},
    partialFingerprints={"type": "object", "additionalProperties": {"type": "string"}},
    properties=BAG,
)
NOTIFICATION = closed(
    {"message": TEXT}, level=LEVEL, associatedRule=closed({"id": {"type": "string"}})
)
INVOCATION = closed(
    {"executionSuccessful": {"type": "boolean"}},
    toolExecutionNotifications={"type": "array", "items": NOTIFICATION},
)
DRIVER = closed(
    {"name": {"type": "string"}},
    semanticVersion={"type": "string"},
    rules={"type": "array", "items": RULE, "uniqueItems": True},
)
LOG = closed(
    {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": closed(
                {"tool": closed({"driver": DRIVER})},
                invocations={"type": "array", "items": INVOCATION},
                results={"type": "array", "items": RESULT},
            ),
        },
    },
    **{"$schema": {"type": "string", "format": "uri"}},
)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_keeps_to_the_standard(situation: str) -> None:
    log = json.loads(sarif.render(*SITUATIONS[situation]))
    jsonschema.Draft202012Validator(LOG).validate(log)


def rendered(run_and_checkup: Any) -> dict[str, Any]:
    log = json.loads(sarif.render(*run_and_checkup))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    (tool_run,) = log["runs"]
    return dict(tool_run)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_essentials(situation: str) -> None:
    _, checkup = SITUATIONS[situation]
    tool_run = rendered(SITUATIONS[situation])
    driver = tool_run["tool"]["driver"]
    assert driver["name"] == "holter"
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", driver["semanticVersion"])
    ids = [each["id"] for each in driver["rules"]]
    assert len(ids) == len(set(ids))
    assert len(tool_run["results"]) == len(checkup.findings)
    marks = [tuple(each["partialFingerprints"].values()) for each in tool_run["results"]]
    assert len(marks) == len(set(marks))
    for result in tool_run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in {"error", "warning", "note"}
        assert result["message"]["text"]
        assert {"confidence", "level", "onset", "preview"} <= set(result["properties"])
    (invocation,) = tool_run["invocations"]
    told = [each["message"]["text"] for each in invocation["toolExecutionNotifications"]]
    assert all(any(each.rule in text for text in told) for each in checkup.not_examined)


def test_rules_carry_their_page() -> None:
    rules = {each["id"]: each for each in rendered(SITUATIONS["known"])["tool"]["driver"]["rules"]}
    page = rules["flat-curve"]["help"]["markdown"]
    assert page == RULES["flat-curve"].doc
    assert "## When it is wrong" in page
    assert rules["flat-curve"]["shortDescription"]["text"] == "The run has flat-curve."


def test_the_script_is_the_place() -> None:
    known = rendered(SITUATIONS["known"])["results"][0]
    (location,) = known["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "train.py"
    spaced = rendered((run(environment=Environment(("my train.py",))), Checkup((FLAT,))))[
        "results"
    ][0]
    uri = spaced["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "my%20train.py"
    assert (
        "locations"
        not in rendered((run(environment=Environment()), Checkup((FLAT,))))["results"][0]
    )


def test_a_fingerprint_lasts_from_run_to_run_and_is_never_shared() -> None:
    later = dataclasses.replace(FLAT, onset=9, summary="loss 2.4 at step 9")
    first, second = (
        rendered((run(), Checkup(findings)))["results"]
        for findings in ((FLAT, ODD), (later, later))
    )
    marks = [each["partialFingerprints"]["holter/v1"] for each in (*first, *second)]
    assert marks[0] == marks[2]
    assert len(set(marks)) == 3


def test_a_finding_from_the_source_has_its_line() -> None:
    read = dataclasses.replace(FLAT, place="train.py:48")
    tool_run = rendered((run(environment=Environment(("src/train.py",))), Checkup((read,))))
    (place,) = tool_run["results"][0]["locations"]
    assert place["physicalLocation"]["region"] == {"startLine": 48}
