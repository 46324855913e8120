"""What several reports say about a run beside its findings, from its meta, events and costs."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath, PureWindowsPath

import numpy as np

from holter.diagnosis.engine import Checkup
from holter.diagnosis.facts.ending import exception_line
from holter.diagnosis.signal_words import source
from holter.record import Run
from holter.record.findings import Evidence, Finding, Normal, Verdict
from holter.record.signals import CATALOGUE, WATCH_TIME, Per
from holter.reports._numbers import count, percent

_OWNERS = 4  # whose readings are counted: those of one signal are mostly read together
_SHORT = 120.0  # seconds: of shorter runs the cost is shown in seconds, not as a share


@dataclass(frozen=True, slots=True)
class WatchCost:
    """Time that watching took, of how long a run; None where it was not measured."""

    seconds: float | None = None
    duration: float | None = None
    imported: bool = False  # from the log of another tool

    @property
    def share(self) -> float | None:
        """The time as a share of the run's duration."""
        if self.seconds is None or self.duration is None:
            return None
        return self.seconds / self.duration

    @property
    def says(self) -> str:
        """The cost as a phrase: seconds for short runs, a percentage for long ones."""
        if self.seconds is None:
            return "imported from a log" if self.imported else "cost not measured"
        if self.share is None or self.duration is None or self.duration < _SHORT:
            return f"holter took {self.seconds:.1f} s"
        return f"holter took {percent(self.share)} of the time"


def cost(run: Run) -> WatchCost:
    """Return the sum of the watch's own times, and the run's duration."""
    if WATCH_TIME not in run:
        return WatchCost(imported=run.meta.source is not None)
    readings = [series.values.astype(np.float64) for series in run[WATCH_TIME].values()]
    seconds = sum(float(values[np.isfinite(values)].sum()) for values in readings)
    duration = run.meta.duration
    if duration is None or not 0 < duration < float("inf"):
        return WatchCost(seconds)
    return WatchCost(seconds, duration)


def steps_read(run: Run) -> list[tuple[int, list[str]]]:
    """Return numbers of steps with the signals that were read at so many, the most often first."""
    signals: dict[int, list[str]] = {}
    for name, table in run.tables.items():
        signal = CATALOGUE.get(name)
        if signal is None or signal.rare or signal.per is Per.TRIAL:
            continue
        steps = [table[owner].steps for owner in islice(table, _OWNERS)]
        longest = max(steps, key=len, default=np.empty(0))
        same = all(np.array_equal(one, longest) for one in steps)  # mostly read together
        read = len(longest) if same else len(np.unique(np.concatenate(steps)))
        signals.setdefault(read, []).append(name)
    return [(read, sorted(signals[read])) for read in sorted(signals, reverse=True) if read]


def ending(run: Run) -> str:
    """Return how the training ended, in a sentence; empty where it finished or is unknown."""
    status = run.meta.status
    if status == "running":
        return "the recording is incomplete: the training is still running, or was killed"
    if status == "interrupted":
        return f"the training was interrupted after {count(run.steps, 'step')}"
    if status != "failed":
        return ""
    raised = exception_line(run)
    if raised is None:
        return f"the training failed after {count(run.steps, 'step')}"
    return f"the training ended at step {raised[0]} with {raised[1]}"


def script(run: Run) -> str | None:
    """Return the script of the run as a relative path with forward slashes, or None."""
    for word in run.meta.environment.command:
        if word.endswith(".py"):
            path = PureWindowsPath(word) if "\\" in word else PurePath(word)
            inside = not path.is_absolute() and not path.drive and ".." not in path.parts
            return path.as_posix() if inside else None
    return None


def line_in(file: str, finding: Finding) -> int | None:
    """Return the line of a file that a finding is about, if the source shows it."""
    name, _, line = finding.place.rpartition(":")
    return int(line) if name == PurePath(file).name and line.isdecimal() else None


def clear_rules(checkup: Checkup) -> dict[str, str]:
    """Return the rules that found nothing odd, each with all that was measured."""
    odd: tuple[Verdict, ...] = (*checkup.findings, *checkup.normal, *checkup.not_examined)
    others = {verdict.rule for verdict in odd}
    return by_rule(verdict for verdict in checkup.clear if verdict.rule not in others)


def by_rule(verdicts: Iterable[Verdict]) -> dict[str, str]:
    """Return what each rule says, joined where a rule says several things."""
    given: dict[str, dict[str, None]] = {}
    for verdict in verdicts:
        says = given.setdefault(verdict.rule, {})
        if text := _says(verdict):
            says[text] = None
    return {rule: "; ".join(says) for rule, says in given.items()}


def _says(verdict: Verdict) -> str:
    if isinstance(verdict, Normal) and verdict.exception:
        return f"{verdict.summary} ({verdict.exception})"
    return verdict.summary if isinstance(verdict, Finding | Normal) else verdict.because


def tally(checkup: Checkup) -> str:
    """Return how many rules found nothing, and how many could not be examined."""
    clear = f"{count(len(clear_rules(checkup)), 'rule')} clear"
    unknown = len({verdict.rule for verdict in checkup.not_examined})
    return f"{clear}, {unknown} not examined" if unknown else clear


def step_range(steps: tuple[int, int]) -> str:
    """Return `step 7` or `steps 0-299`."""
    first, last = steps
    return f"step {first}" if first == last else f"steps {first}-{last}"


def evidence_line(evidence: Evidence) -> str:
    """Return signal, owner, steps and what they say, in one line."""
    where = source(evidence.signal, evidence.owner)
    return f"{where}, {step_range(evidence.steps)}: {evidence.says}"
