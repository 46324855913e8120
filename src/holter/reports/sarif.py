"""The report for code-scanning services: SARIF 2.1.0."""

import hashlib
import json
from collections import Counter
from typing import Any
from urllib.parse import quote

from holter._version import __version__
from holter.diagnosis.differential import diagnose
from holter.diagnosis.engine import Checkup, all_rules
from holter.diagnosis.rule import Rule
from holter.record import Run
from holter.record.findings import Finding, Severity
from holter.reports._facts import ending, evidence_line, line_in, script

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def render(run: Run, checkup: Checkup) -> str:
    """Return a log with one run of the tool: its rules with their pages, a result per finding."""
    spoke = (checkup.findings, checkup.normal, checkup.clear, checkup.not_examined)
    names = sorted({verdict.rule for verdicts in spoke for verdict in verdicts})
    rules = all_rules()
    driver = {
        "name": "holter",
        "semanticVersion": __version__,
        "rules": [_descriptor(rules[name]) if name in rules else {"id": name} for name in names],
    }
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "invocations": [_invocation(run, checkup)],
                "results": _results(run, checkup, names),
            }
        ],
    }
    return json.dumps(log, indent=2, allow_nan=False) + "\n"


def _descriptor(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.name,
        "shortDescription": {"text": rule.title or rule.name},
        "help": {"text": rule.doc or rule.name, "markdown": rule.doc or rule.name},
        "defaultConfiguration": {"level": _LEVEL[rule.severity]},
        "properties": {"level": str(rule.level), "preview": rule.preview},
    }


def _invocation(run: Run, checkup: Checkup) -> dict[str, Any]:
    """Return the notifications: a rule that was not examined is not a result."""
    notifications: list[dict[str, Any]] = [
        {
            "level": "note",
            "message": {"text": f"{verdict.rule} was not examined: {verdict.because}"},
            "associatedRule": {"id": verdict.rule},
        }
        for verdict in checkup.not_examined
    ]
    if ending(run):
        notifications.append({"level": "note", "message": {"text": ending(run)}})
    return {"executionSuccessful": True, "toolExecutionNotifications": notifications}


def _results(run: Run, checkup: Checkup, names: list[str]) -> list[dict[str, Any]]:
    diagnosis, file = diagnose(checkup), script(run)
    seen: Counter[str] = Counter()
    results = []
    for finding in checkup.findings:
        mark = _fingerprint(finding, file)
        seen[mark] += 1
        result: dict[str, Any] = {
            "ruleId": finding.rule,
            "ruleIndex": names.index(finding.rule),
            "level": _LEVEL[finding.severity],
            "message": {"text": _message(finding)},
            "partialFingerprints": {"holter/v1": f"{mark}:{seen[mark]}"},
            "properties": {
                "confidence": str(finding.confidence),
                "level": str(finding.level),
                "onset": finding.onset,
                "preview": finding.preview,
                "leading": finding is diagnosis.leading,
                "explained": finding in diagnosis.explained,
            },
        }
        if file is not None:
            result["locations"] = [_location(file, line_in(file, finding) or 1)]
        results.append(result)
    return results


def _message(finding: Finding) -> str:
    evidence = [evidence_line(reading) for reading in finding.evidence]
    fix = [f"fix: {finding.fix}"] if finding.fix else []
    return "\n".join([finding.summary, *evidence, *fix])


def _location(file: str, line: int) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(file), "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": line},
        }
    }


def _fingerprint(finding: Finding, file: str | None) -> str:
    """Return a hash that is stable from run to run: without steps and measured numbers."""
    owners = sorted({f"{reading.signal.name} {reading.owner}" for reading in finding.evidence})
    return hashlib.sha256("\n".join([finding.rule, file or "", *owners]).encode()).hexdigest()[:32]
