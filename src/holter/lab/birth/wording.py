"""Wording: a birth in one sentence for people."""

from collections.abc import Sequence
from dataclasses import dataclass

from holter.diagnosis.wording import some
from holter.lab.birth.classes import Class
from holter.lab.birth.events import Glance, Outside, TracedOperation
from holter.lab.birth.owners import Owner

_MOST = 3
_SAMPLES = 8
_LONGEST = 60  # of an expression that is shown
_HIDDEN = "; it is masked out of the loss, but not out of the gradients"


@dataclass(frozen=True, slots=True)
class Act:
    """What was being done."""

    operation: str
    phase: str
    node: str
    owner: Owner | None  # of what was being updated
    hidden: bool  # the loss is finite, as what was born was masked out of it


def born(event: TracedOperation, found: Class, glance: Glance, act: Act) -> str:
    """What was born where, of what."""
    doing = f"the gradient of {act.operation}" if event.site.derived else act.operation
    place = event.site.module
    if act.phase == "update":
        place = f"the update of {act.owner.name}" if act.owner else "an update"
    text = event.site.expression
    exact = f" `{text}`" if 0 < len(text) <= _LONGEST else ""
    at = f"{exact} at {event.site.where}" if event.site.where else ""
    about = ", ".join(each for each in (act.phase, act.node, glance.dtype) if each)
    amount = f"; {glance.count} of {glance.of} elements" if glance.of > 1 else ""
    states = event.detail.states if event.detail is not None else ()
    made_of = f" (computed from {' and '.join(_plain(states))})" if states else ""
    return (
        f"{event.extent.says} is born in {f'{place}, ' if place else ''}{doing}{at} ({about}):"
        f" {found.why}{made_of}{amount}{_of_samples(glance)}{_HIDDEN if act.hidden else ''}"
    )


def brought(outside: Outside, event: TracedOperation, act: Act) -> str:
    """What was not finite before the step began."""
    what = {"parameter": "The weight", "buffer": "The buffer", "state": "The optimizer's"}
    owner, glance = outside.owner, outside.glance
    since = " that no operation of torch has written" if owner.role == "memory" else " already"
    at = f" at {event.site.where}" if event.site.where else ""
    amount = f", in {glance.count} of {glance.of} elements" if glance.of > 1 else ""
    return (
        f"{what.get(owner.role, 'The tensor')} {_shown(owner.name)} holds {outside.extent.says}"
        f"{since}{amount}{_of_samples(glance)};"
        f" {event.operation}{at} is the first to read it{_HIDDEN if act.hidden else ''}"
    )


def _shown(name: str) -> str:
    """The name of a tensor; a part of the batch that the script takes by an index has none."""
    return "of the batch" if name.startswith("__holter_batch_") else name


def passed(count: int, modules: Sequence[str]) -> str:
    """Who only passed it on."""
    if not count:
        return ""
    named = ", ".join(modules[:_MOST])
    rest = f" and {len(modules) - _MOST} more" if len(modules) > _MOST else ""
    where = f" in {named}{rest}" if modules else ""
    return f"; {count} later {'operation' if count == 1 else 'operations'}{where} passed it on"


def _plain(states: Sequence[str]) -> list[str]:
    """States without the parameter that they all belong to."""
    return [state.partition(" of ")[0] for state in states]


def _of_samples(glance: Glance) -> str:
    samples = glance.samples
    if not samples:
        return ""
    if glance.all_samples:
        return f", all {len(samples)} samples"
    return f", sample{'s' * (len(samples) > 1)} {some(list(map(str, samples)), limit=_SAMPLES)}"
