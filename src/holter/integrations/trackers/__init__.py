"""Send what a run holds to an experiment tracker: signals of steps, findings, the report.

A tracker reads the run as any report does, when it is complete: nothing is recorded twice.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol

from holter.diagnosis.engine import Checkup, check
from holter.record import Run
from holter.record.errors import HolterError
from holter.record.findings import Confidence, Finding, Severity
from holter.record.notices import tell
from holter.record.signals import CATALOGUE, Per
from holter.reports import REPORTS, report

TRACKERS = ("tensorboard", "wandb", "mlflow", "trackio")
_WIDE = (Per.PARAMETER, Per.MODULE, Per.TRIAL)  # too many owners for a tracker's charts


@dataclass(frozen=True, slots=True)
class Sendable:
    """What a tracker is sent of one run."""

    run: Run
    checkup: Checkup

    def scalars(self) -> Iterator[tuple[str, int, float]]:
        """Yield readings that belong to no parameter or module, and findings: name, step, value.

        A finding is 1 at the step where it begins, or at the last one if it has no beginning.
        """
        for finding in self.checkup.findings:
            last = max(self.run.steps - 1, 0)
            yield (
                f"holter/finding/{finding.rule}",
                last if finding.onset is None else finding.onset,
                1.0,
            )
        for signal in CATALOGUE.values():
            if signal not in self.run or signal.per in _WIDE or signal.bins > 1:
                continue
            for owner, series in self.run[signal].items():
                name = f"holter/{signal.name}" + (f"/{owner}" if owner else "")
                for step, value in zip(series.steps, series.values, strict=True):
                    yield name, int(step), float(value)

    def by_step(self) -> Iterator[tuple[int, dict[str, float]]]:
        """The same, all of a step together, in the order of steps."""
        steps: dict[int, dict[str, float]] = {}
        for name, step, value in self.scalars():
            steps.setdefault(step, {})[name] = value
        yield from sorted(steps.items())

    @property
    def alerts(self) -> list[tuple[Finding, str]]:
        """Warnings and errors that are likely or certain, each with its level: WARN or ERROR."""
        return [
            (finding, "ERROR" if finding.severity is Severity.ERROR else "WARN")
            for finding in self.checkup.findings
            if finding.severity >= Severity.WARNING and finding.confidence > Confidence.HINT
        ]

    @property
    def page(self) -> tuple[str, str]:
        """The report as a file: its name, and its text."""
        kind = "html" if "html" in REPORTS else "text"
        ending = "html" if kind == "html" else "txt"
        return f"holter.{ending}", report(kind)(self.run, self.checkup)

    @property
    def summary(self) -> str:
        """The outcome and all findings, a line each."""
        outcome = self.checkup.outcome
        lines = [f"{outcome.title}. {outcome.says}"]
        lines += [
            f"{finding.severity} {finding.rule} ({finding.confidence}): {finding.summary}"
            for finding in self.checkup.findings
        ]
        return "\n".join(lines)


class Tracker(Protocol):
    """A module of this package."""

    def send(self, what: Sendable) -> str:
        """Send it; return where it went."""


def sender(to: str) -> Callable[[Path], None]:
    """Return a function that sends the run in a folder to the tracker of that name."""
    if to not in TRACKERS:
        raise HolterError(f"There is no tracker {to!r}; there are {', '.join(TRACKERS)}.")
    try:
        tracker: Tracker = import_module(f"holter.integrations.trackers.{to}")
    except ImportError as error:
        raise HolterError(f"{to} is not installed: pip install {to}.") from error

    def send(path: Path) -> None:
        run = Run.load(path)
        try:
            tell(f"sent to {tracker.send(Sendable(run, check(run)))}")
        except Exception as problem:  # the training is over, and its run is safe
            tell(f"sending the run to {to} failed: {problem}; it is in {path}")

    return send
