"""Birth: what is known of it, put together from the events of a step."""

import linecache
import re
from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from holter.lab.birth.classes import Class, classify
from holter.lab.birth.descent import Origin, end_of_mask, heirs, origins
from holter.lab.birth.events import Glance, Stage, TracedOperation
from holter.lab.birth.operations import DIVISIONS, meant
from holter.lab.birth.owners import Owner
from holter.lab.birth.running import Course
from holter.lab.birth.sources import shortened
from holter.lab.birth.tracing import Trace
from holter.lab.birth.wording import Act, born, brought, passed
from holter.record.births import Birth, Operand

_SAMPLES = 8  # that are named
_NEXT = 4  # operations after a birth that are named


def birth(
    trace: Trace, course: Course, stepped_at: str = "", backward_at: str = ""
) -> Birth | None:
    """The birth of what is not finite at the end of a step; None if there is none.

    `stepped_at` and `backward_at` are file and line of the script's `optimizer.step()` and
    `backward()`.
    """
    reached = [(trace.writer(tensor), owner) for owner, tensor in course.symptoms]
    if course.error is not None:
        if not _is_blamed(course.error):
            raise course.error
        reached = [(trace.last_read(), None)]
    known = [(number, owner) for number, owner in reached if number is not None]
    found = _origin(trace.events, known, of_loss=course.of_loss)
    if found is None:
        if course.error is not None:
            raise course.error
        return _unexplained(course.symptoms) if course.symptoms and not known else None
    origin, owner = found
    told = _told(trace.events, origin, owner, hidden=not (course.of_loss or course.error))
    if told.phase == "update":
        told = _in_update(told, stepped_at)
    if told.phase != "backward" or told.kind != "half range":
        return told
    # A scaler that finds such gradients skips the step and halves its scale: that is its business.
    return None if course.scale > 1 else _applied(_scaled(told, backward_at), stepped_at)


def _is_blamed(error: Exception) -> bool:
    """Whether an error may have been raised because something is not finite."""
    if isinstance(error, AssertionError | ArithmeticError):
        return True
    return re.search(r"\b(nan|infs?|infinite|(non-?)?finite)\b", str(error), re.I) is not None


def _origin(
    events: Sequence[TracedOperation], reached: Sequence[tuple[int, Owner | None]], *, of_loss: bool
) -> tuple[Origin, Owner | None] | None:
    """The earliest origin of some events; infinities that are wanted count in a loss only."""
    every = origins(events)
    found = [(every[number], owner) for number, owner in reached]
    faults = [each for each in found if not each[0].deliberate]
    if faults:
        return min(faults, key=lambda fault: fault[0].number)
    if not of_loss or not found:
        return None
    origin = found[0][0]
    if origin.outside is not None and origin.outside.owner.role == "input":
        return replace(origin, deliberate=False), None
    return Origin(end_of_mask(events, reached[0][0])), None


def _told(
    events: Sequence[TracedOperation], origin: Origin, owner: Owner | None, *, hidden: bool
) -> Birth:
    event, after = events[origin.number], heirs(events, origin)
    found = classify(event, origin)
    phase: Stage = event.phase
    node = event.site.node
    hidden = hidden and phase == "forward"
    if hidden:  # the loss did not inherit it, but a gradient did
        there = [each for each in after if events[each].phase == "backward"]
        phase, node = "backward", events[there[0]].site.node if there else ""
    owner = (owner or event.owner) if phase == "update" else None
    module = event.site.module or (owner.module if owner else "")
    passing = (events[each].site.module for each in after)
    modules = tuple(dict.fromkeys(each for each in passing if each not in ("", module)))
    operands, glance = _given(event, origin, found)
    outside = origin.outside if found.kind != "in-place edit" else None
    operation = meant(event.site.operation or event.operation, event.site.line)
    act = Act(operation, phase, node, owner, hidden=hidden)
    says = brought(outside, event, act) if outside else born(event, found, glance, act)
    return Birth(
        operation=act.operation,
        kind=found.kind,
        phase=phase,
        where=event.site.where,
        line=event.site.line,
        module=module,
        node=node,
        operands=operands,
        count=glance.count,
        of=glance.of,
        samples=glance.samples[:_SAMPLES],
        positions=glance.positions,
        passed_on=len(after),
        passed_to=modules,
        headroom=found.headroom,
        says=says + passed(len(after), modules) + ".",
        sample_count=len(glance.samples),
        made_by=_made_by(event),
        went_into=tuple(events[each].operation for each in after[:_NEXT]),
        masked=hidden,
        parameter=_parameter(owner),
        states=event.detail.states if event.detail is not None else (),
    )


def _made_by(event: TracedOperation) -> tuple[str, ...]:
    """The operations that led to the operand by which an operation fails, the last first."""
    if event.detail is None or not event.detail.histories:
        return ()
    place = -1 if event.operation in DIVISIONS else 0
    return event.detail.histories[place].chain


def _parameter(owner: Owner | None) -> str:
    """The parameter that an owner is, or whose state it is."""
    if owner is None or owner.role not in ("parameter", "state"):
        return ""
    return owner.name.rpartition(" of ")[2] if owner.role == "state" else owner.name


def _in_update(told: Birth, stepped_at: str) -> Birth:
    """Name the line of the script that makes the update, where torch's own code is at work."""
    if not stepped_at:
        return told
    file, _, number = stepped_at.rpartition(":")
    where = f"{shortened(file)}:{number}"
    line = linecache.getline(file, int(number)).strip()
    says = f"{told.says.removesuffix('.')}; the update is made by `{line}` at {where}."
    own = bool(told.where) and not told.where.startswith("torch/")
    if own:
        return replace(told, stepped_at=where, says=says)
    return replace(told, where=where, line=line, stepped_at=where, says=says)


def _scaled(told: Birth, backward_at: str) -> Birth:
    """Name the line of the script that differentiates the loss, with whatever scale it has."""
    if not backward_at:
        return told
    file, _, number = backward_at.rpartition(":")
    where = f"{shortened(file)}:{number}"
    line = linecache.getline(file, int(number)).strip()
    says = f"{told.says.removesuffix('.')}; the backward pass is that of `{line}` at {where}."
    return replace(told, backward_at=where, says=says)


def _applied(told: Birth, stepped_at: str) -> Birth:
    """Name the line of the script that applies a gradient although it overflowed."""
    if not stepped_at:
        return told
    file, _, number = stepped_at.rpartition(":")
    where = f"{shortened(file)}:{number}"
    line = linecache.getline(file, int(number)).strip()
    says = f"{told.says.removesuffix('.')}; `{line}` at {where} applies it nevertheless."
    return replace(told, stepped_at=where, says=says)


def _given(
    event: TracedOperation, origin: Origin, found: Class
) -> tuple[tuple[Operand, ...], Glance]:
    """What the operation was given, and what was wrong then."""
    if origin.outside is not None and found.kind != "in-place edit":
        return (origin.outside.operand,), origin.outside.glance
    if event.detail is None:
        return (), Glance()
    glance = event.detail.glance
    if event.phase == "update":
        glance = replace(glance, samples=())
    elif found.headroom is not None and not glance.samples:
        glance = replace(glance, samples=event.detail.loudest)
    return event.detail.operands, glance


def _unexplained(symptoms: Sequence[tuple[Owner | None, Tensor]]) -> Birth:
    owner = symptoms[0][0]
    phase, what = ("update", owner.name) if owner is not None else ("forward", "The step")
    says = f"{what} is not finite at the end, but no operation was seen to make it so."
    parameter = _parameter(owner)
    return Birth(
        operation="",
        kind="unknown",
        phase=phase,
        where="",
        line="",
        module=owner.module if owner is not None else "",
        node="",
        operands=(),
        count=0,
        of=0,
        samples=(),
        positions=(),
        passed_on=0,
        passed_to=(),
        headroom=None,
        says=says,
        parameter=parameter,
    )
