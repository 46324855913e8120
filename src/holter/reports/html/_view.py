"""What panels are made from: a run, its checkup and diagnosis; and what panels are made of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from holter.diagnosis.differential import Diagnosis
from holter.diagnosis.engine import Checkup
from holter.record import Run
from holter.record.findings import Finding
from holter.record.signals import Signal
from holter.reports.html._markup import Html

Mark = Mapping[str, Any]
_NOTHING = Html("")


@dataclass(frozen=True, slots=True)
class Drawing:
    """One chart: the function of `report.js` that draws it, and its data."""

    kind: str
    data: Mapping[str, Any]
    title: str = ""
    note: str = ""
    is_wide: bool = False
    is_folded: bool = False  # shown when the reader opens it


@dataclass(frozen=True, slots=True)
class Panel:
    """A section of the page: a sentence, charts, and HTML below them."""

    drawings: tuple[Drawing, ...] = ()
    intro: str = ""
    below: Html = _NOTHING


@dataclass(frozen=True, slots=True)
class View:
    """A run with all that is known of it."""

    run: Run
    checkup: Checkup
    diagnosis: Diagnosis

    def marks(self, signal: Signal, owners: Iterable[str] | None = None) -> list[Mark]:
        """Return the evidence of findings in a signal as ranges of steps; of all owners if None."""
        wanted = None if owners is None else set(owners)
        return [
            {
                "from": evidence.steps[0],
                "to": evidence.steps[1],
                "kind": str(finding.severity),
                "text": f"{finding.rule}: {evidence.says}",
                "owner": evidence.owner,
            }
            for finding in self.checkup.findings
            for evidence in finding.evidence
            if evidence.signal.name == signal.name and (wanted is None or evidence.owner in wanted)
        ]

    def onsets(self) -> list[Mark]:
        """Return the steps at which the cause and its consequences began, if not at the start."""
        leading = self.diagnosis.leading
        shown = () if leading is None else (leading, *self.diagnosis.explained)
        first: dict[int, Finding] = {}
        for finding in shown:
            if finding.onset > 0:
                first.setdefault(finding.onset, finding)
        return [
            {"from": step, "to": step, "kind": "onset", "text": f"{finding.rule}, step {step:,}"}
            for step, finding in first.items()
        ]
