"""The report for GitHub Actions: one workflow command per finding, shown as an annotation."""

from holter.diagnosis.differential import Diagnosis, diagnose
from holter.diagnosis.engine import Checkup
from holter.record import Run
from holter.record.findings import Finding, Severity
from holter.reports._facts import ending, evidence_line, line_in, script, tally
from holter.reports._outcome import headline

_COMMAND = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(run: Run, checkup: Checkup) -> str:
    """Return the leading finding, its effects and the others; a notice where there is none."""
    diagnosis, file = diagnose(checkup), script(run)
    lines = []
    if diagnosis.leading is not None:
        lines.append(_annotation(diagnosis.leading, _card(diagnosis), file))
        because = f"explained by {diagnosis.leading.rule}"
        lines += [_annotation(effect, [because], file) for effect in diagnosis.explained]
        lines += [_annotation(other, _evidence(other), file) for other in diagnosis.others]
    else:
        line = headline(run, checkup)
        text = f"{line.says}; {tally(checkup)}"
        lines.append(_command("notice", f"holter: {line.state}", text, file))
    lines += [_command("error", "holter", failure, file) for failure in checkup.failures]
    if ending(run):
        lines.append(_command("notice", "holter", ending(run), file))
    return "".join(f"{line}\n" for line in lines)


def _annotation(finding: Finding, details: list[str], file: str | None) -> str:
    preview = "preview, " if finding.preview else ""
    title = f"holter: {finding.rule} ({preview}{finding.confidence}, since step {finding.onset})"
    line = None if file is None else line_in(file, finding)
    text = "\n".join([finding.summary, *details])
    return _command(_COMMAND[finding.severity], title, text, file, line)


def _card(diagnosis: Diagnosis) -> list[str]:
    assert diagnosis.leading is not None
    finding = diagnosis.leading
    test = "prove" if diagnosis.known else "next"
    return [
        *([] if diagnosis.known else ["cause unknown"]),
        *_evidence(finding),
        *(f"ruled out: {clear.rule}: {clear.because}" for clear in diagnosis.ruled_out),
        *(f"{test}: {experiment}" for experiment in diagnosis.experiments),
        *([f"fix: {finding.fix}"] if finding.fix else []),
    ]


def _evidence(finding: Finding) -> list[str]:
    return [f"evidence: {evidence_line(reading)}" for reading in finding.evidence]


def _command(
    command: str, title: str, message: str, file: str | None, line: int | None = None
) -> str:
    properties = f"file={_property(file)}," if file else ""
    properties += f"line={line}," if line else ""
    return f"::{command} {properties}title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
