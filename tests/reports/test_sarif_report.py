"""SARIF 2.1.0: the essentials by hand, for want of the schema in a test without network."""

import dataclasses
import json
import re
from typing import Any

import pytest
from situations import FLAT, ODD, RULES, SITUATIONS, run

from holter.diagnosis.engine import Checkup
from holter.record.meta import Environment
from holter.reports import sarif


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
