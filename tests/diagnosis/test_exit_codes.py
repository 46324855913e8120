"""The exit code follows what is printed: ERROR in a report, FAIL in a checklist."""

import re

import pytest

from holter.diagnosis.checklist import Status, exit_code, rows
from holter.diagnosis.engine import Checkup, check
from holter.record import Event, Run
from holter.record.events import ExperimentFailed
from holter.record.findings import Confidence, Finding, Level, Severity
from holter.record.signals import LOSS, MIXING_OTHERS, MIXING_OWN
from holter.reports import checklist, text
from synthetic import run_of

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
HINT, LIKELY = Confidence.HINT, Confidence.LIKELY
RUN = run_of({LOSS: {"": [2.0 * 0.98**step for step in range(60)]}})


def finding(
    rule: str, severity: Severity, confidence: Confidence = LIKELY, *, preview: bool = False
) -> Finding:
    return Finding(rule, severity, confidence, Level.DATA, "it is odd", 0, (), "", preview=preview)


def of(*findings: Finding) -> Checkup:
    return Checkup(findings=tuple(sorted(findings, key=lambda each: -each.severity)))


def explaining(rule: str, severity: Severity, *effects: str, preview: bool = False) -> Finding:
    return Finding(
        rule, severity, LIKELY, Level.DATA, "it is odd", 0, (), "", effects, preview=preview
    )


# Findings, exit code of a report, exit code of a checklist.
TABLE = {
    "nothing": (of(), 0, 0),
    "an error": (of(finding("doubled-softmax", ERROR)), 1, 1),
    "an error that is a hint": (of(finding("dead-units", ERROR, HINT)), 1, 0),
    "a warning": (of(finding("flat-loss", WARNING)), 0, 1),
    "a warning that is a hint": (of(finding("flat-loss", WARNING, HINT)), 0, 0),
    "an information": (of(finding("imbalanced-classes", INFO)), 0, 0),
    "an error of a preview rule": (of(finding("fading-activations", ERROR, preview=True)), 0, 0),
    "an error of a rule without a check": (of(finding("nonfinite-birth", ERROR)), 1, 1),
    "a warning that explains an error": (
        of(explaining("flat-loss", WARNING, "dead-units"), finding("dead-units", ERROR)), 1, 1,
    ),
    "a preview rule that explains an error, beside a warning": (
        of(
            explaining("fading-activations", ERROR, "dead-units", preview=True),
            finding("dead-units", ERROR),
            finding("flat-loss", WARNING),
        ), 1, 1,
    ),
}  # fmt: skip


def says(word: str, printed: str) -> bool:
    return re.search(rf"\b{word}\b", printed) is not None


@pytest.mark.parametrize("case", TABLE)
@pytest.mark.parametrize("whole", [False, True])
def test_a_report_says_error_and_fails_together(case: str, whole: bool) -> None:
    checkup, code, _ = TABLE[case]
    assert exit_code(checkup, ERROR) == code
    assert says("ERROR", text.render(RUN, checkup, whole=whole)) is bool(code)


@pytest.mark.parametrize("case", TABLE)
@pytest.mark.parametrize("whole", [False, True])
def test_a_checklist_says_fail_and_fails_together(case: str, whole: bool) -> None:
    checkup, _, code = TABLE[case]
    assert exit_code(checkup, ERROR, rows(RUN, checkup)) == code
    printed = checklist.render(RUN, checkup, whole=whole)
    assert says("FAIL", printed) is bool(code)
    assert not says("ERROR", printed)


@pytest.mark.parametrize(
    ("fail_on", "preview", "code"),
    [(WARNING, False, 1), (INFO, False, 1), (WARNING, True, 0), (None, False, 0)],
)
def test_fail_on_a_lower_severity(fail_on: Severity | None, preview: bool, code: int) -> None:
    checkup = of(finding("flat-loss", WARNING, HINT, preview=preview))
    assert exit_code(checkup, fail_on) == code
    assert exit_code(checkup, fail_on, rows(RUN, checkup)) == code


def failed(*signals: str, experiment: str = "sample-mixing") -> Run:
    event = Event(0, 0.0, ExperimentFailed(experiment, "RuntimeError: no", signals))
    return run_of({LOSS: {"": [1.0, 0.5]}}, events=[event])


def test_an_internal_error_is_no_missing_answer() -> None:
    run = failed(MIXING_OWN.name, MIXING_OTHERS.name)
    checkup = check(run, select=["mixed-samples", "nonfinite-loss"])
    answered = {row.check.name: row for row in rows(run, checkup)}
    assert answered["samples"].status is Status.ERROR
    assert answered["finite"].status is Status.PASS
    sentence = "the check sample-mixing failed inside holter: RuntimeError: no; please report it"
    assert answered["samples"].says.startswith(sentence)
    for printed in (checklist.render(run, checkup), text.render(run, checkup)):
        assert "failed inside holter: RuntimeError: no" in " ".join(printed.split())
    for shown in (None, tuple(answered.values())):
        assert exit_code(checkup, ERROR, shown) == 2
        assert exit_code(checkup, None, shown) == 0


def test_an_experiment_without_a_check_has_a_row_if_it_fails() -> None:
    run = failed("init.activation_std", experiment="init")
    checkup = check(run, select=["nonfinite-loss"])
    (row,) = (row for row in rows(run, checkup) if row.status is Status.ERROR)
    assert row.check.name == "internal"
    assert row.says.startswith("the check init failed inside holter")
    assert exit_code(checkup, ERROR, rows(run, checkup)) == 2
