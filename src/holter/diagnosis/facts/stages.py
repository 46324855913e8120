"""The stages of a training: parts with an optimizer or a loss function of their own."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holter.diagnosis.facts.curve import Curve
from holter.record.events import OptimizerSeen
from holter.record.signals import LOSS_SUMMED

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_MOST = 8  # stages; an optimizer that is created again more often starts no stage


@dataclass(frozen=True, slots=True, order=True)
class Start:
    """Where a stage begins: at `step`, or between `after` and it where steps were sampled."""

    after: int
    step: int


def starts(facts: "Facts") -> list[Start]:
    """Return where a new optimizer or another loss function takes over, in order of steps."""
    seen = {event.step for event in facts.run.events_of(OptimizerSeen) if event.step > 0}
    # A new optimizer is seen before its first step, while the one before it may still be open.
    begun = [Start(step - 1, step + 1) for step in seen] + _other_functions(facts)
    return sorted(begun) if len(begun) < _MOST else []


def stages(facts: "Facts", curve: Curve) -> list[Curve]:
    """Return the parts of a curve by stage, without steps that may belong to two."""
    parts, rest = [], curve
    for start in starts(facts):
        before = int((rest.steps <= start.after).sum())
        after = int((rest.steps < start.step).sum())
        parts.append(rest.until(before))
        rest = rest.since(after)
    return [part for part in (*parts, rest) if len(part)]


def _other_functions(facts: "Facts") -> list[Start]:
    """Return where a loss function is first called, or was last called, within the training."""
    if LOSS_SUMMED not in facts.run:
        return []
    called = {name: series.steps for name, series in facts.run[LOSS_SUMMED].items() if len(series)}
    steps = sorted({int(step) for series in called.values() for step in series})
    if len(called) < 2:
        return []
    begun = {int(series[0]) for series in called.values()} - {steps[0]}
    ended = {
        steps[steps.index(int(series[-1])) + 1]
        for series in called.values()
        if series[-1] < steps[-1]
    }
    return [Start(steps[steps.index(step) - 1], step) for step in sorted(begun | ended)]
