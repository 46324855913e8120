"""What several reports say of a run beside its findings, read from its meta, events and costs."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath, PureWindowsPath

import numpy as np

from holter.diagnosis.engine import Checkup
from holter.record import Run
from holter.record.events import ExceptionRaised
from holter.record.findings import Clear, Evidence, NotExamined
from holter.record.signals import WATCH_TIME


@dataclass(frozen=True, slots=True)
class Cost:
    """Time that watching took; None where it was not measured."""

    seconds: float | None = None
    share: float | None = None


def cost(run: Run) -> Cost:
    """The sum of the watch's own times, alone and as a share of the run's duration."""
    if WATCH_TIME not in run:
        return Cost()
    readings = [series.values.astype(np.float64) for series in run[WATCH_TIME].values()]
    seconds = sum(float(values[np.isfinite(values)].sum()) for values in readings)
    duration = run.meta.duration
    if duration is None or not 0 < duration < float("inf"):
        return Cost(seconds)
    return Cost(seconds, seconds / duration)


def ending(run: Run) -> str:
    """How the training ended, in a sentence; nothing where it finished or nobody knows."""
    status = run.meta.status
    if status == "running":
        return "the recording is not closed: the training still runs, or was killed"
    if status == "interrupted":
        return f"the training was interrupted after {count(run.steps, 'step')}"
    if status != "failed":
        return ""
    raised = run.events_of(ExceptionRaised)
    if not raised:
        return f"the training failed after {count(run.steps, 'step')}"
    last = raised[-1].what
    message = f": {first_line(last.message)}" if last.message else ""
    return (
        f"the training ended with {last.type or 'an exception'} at step {raised[-1].step}{message}"
    )


def script(run: Run) -> str | None:
    """The script of the run, as a relative path with forward slashes; None where unknown."""
    for word in run.meta.environment.command:
        if word.endswith(".py"):
            path = PureWindowsPath(word) if "\\" in word else PurePath(word)
            inside = not path.is_absolute() and not path.drive and ".." not in path.parts
            return path.as_posix() if inside else None
    return None


def clear_rules(checkup: Checkup) -> dict[str, str]:
    """Rules that found nothing, each with all that was measured to know it."""
    found = {each.rule for each in checkup.findings}
    unknown = {each.rule for each in checkup.not_examined}
    return by_rule(each for each in checkup.clear if each.rule not in found | unknown)


def by_rule(verdicts: Iterable[Clear | NotExamined]) -> dict[str, str]:
    """The reasons of each rule, in one sentence where a rule spoke more than once."""
    reasons: dict[str, list[str]] = {}
    for each in verdicts:
        said = reasons.setdefault(each.rule, [])
        if each.because and each.because not in said:
            said.append(each.because)
    return {rule: "; ".join(said) for rule, said in reasons.items()}


def by_reason(verdicts: Iterable[NotExamined]) -> dict[str, tuple[str, ...]]:
    """The rules that share a reason for not having been examined."""
    rules: dict[str, dict[str, None]] = {}
    for each in verdicts:
        rules.setdefault(each.because, {})[each.rule] = None
    return {because: tuple(names) for because, names in rules.items()}


def without_findings(run: Run, checkup: Checkup) -> tuple[str, str]:
    """What may be said where nothing was found: a heading and its measure, no hollow green."""
    if run.steps == 0:
        return "no training step was recorded", "there is nothing to judge"
    steps = count(run.steps, "step")
    if not checkup.clear and not checkup.normal:
        return "nothing was examined", f"no rule could be applied to {steps}"
    return "nothing wrong found", f"{tally(checkup)}, {steps}"


def tally(checkup: Checkup) -> str:
    """How many rules found nothing, and how many could not look."""
    clear = f"{count(len(clear_rules(checkup)), 'rule')} clear"
    unknown = len({each.rule for each in checkup.not_examined})
    return f"{clear}, {unknown} not examined" if unknown else clear


def count(number: int, noun: str) -> str:
    """`1 step`, `300 steps`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def step_range(steps: tuple[int, int]) -> str:
    """`step 7` or `steps 0-299`."""
    first, last = steps
    return f"step {first}" if first == last else f"steps {first}-{last}"


def evidence_line(evidence: Evidence) -> str:
    """Signal, owner, steps and what they say, in one line."""
    source = " ".join(filter(None, (evidence.signal.name, evidence.owner)))
    return f"{source}, {step_range(evidence.steps)}: {evidence.says}"


def first_line(text: str, *, limit: int = 200) -> str:
    """The first line that is not empty, shortened to `limit` characters."""
    line = next((each.strip() for each in text.splitlines() if each.strip()), "")
    return line if len(line) <= limit else line[: limit - 3].rstrip() + "..."
