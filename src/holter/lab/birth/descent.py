"""Descent: from what is not finite in the end back to where it came from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holter.lab.birth.events import Outside, TracedOperation
from holter.lab.birth.operations import EDITS, LOGARITHMS, SOFTMAXES


@dataclass(frozen=True, slots=True)
class Origin:
    """Where it began: at an event, or in a tensor that an event was given.

    It is `deliberate` if somebody wanted it there: -inf in a mask is no fault until it makes NaN.
    """

    number: int  # of the event
    outside: Outside | None = None
    deliberate: bool = False


def origins(events: Sequence[TracedOperation]) -> list[Origin]:
    """The origin of each event's output."""
    found: list[Origin] = []
    for number, event in enumerate(events):
        found.append(_origin(number, event, events, found))
    return found


def heirs(events: Sequence[TracedOperation], origin: Origin) -> list[int]:
    """The events that only passed on what began at an origin."""
    touched = {origin.number}
    for number, event in enumerate(events):
        for parent in event.parents:
            source = parent.source
            if isinstance(source, int):
                inherits = source in touched
            else:
                inherits = origin.outside is not None and source.owner == origin.outside.owner
            if inherits:
                touched.add(number)
    return sorted(touched - {origin.number})


def end_of_mask(events: Sequence[TracedOperation], number: int) -> int:
    """Of the events by which a deliberate infinity came to `number`: the first that sums up."""
    line = list(_ancestors(events, number))
    summing = [each for each in line if events[each].shrinks and events[each].detail is not None]
    return min(summing, default=number)


def _origin(
    number: int, event: TracedOperation, events: Sequence[TracedOperation], found: Sequence[Origin]
) -> Origin:
    parents = event.parents
    is_passed_on = event.extent.nan and any(parent.extent.nan for parent in parents)
    if is_passed_on:
        parents = tuple(parent for parent in parents if parent.extent.nan)
    sources = [
        found[parent.source] if isinstance(parent.source, int) else _from(number, parent.source)
        for parent in parents
    ]
    is_softmax = event.operation in SOFTMAXES and event.extent.nan and not is_passed_on
    if is_softmax and _are_masks(sources, events):
        return Origin(number)
    faults = [source for source in sources if not source.deliberate]
    if faults:
        return min(faults, key=lambda fault: fault.number)
    if not sources:  # nobody wants infinite weights: the learning rate of an update is a fault
        wanted = event.constant and not event.extent.nan and event.phase != "update"
        return Origin(number, deliberate=wanted)
    if event.fresh and not event.constant:
        return Origin(number)
    first = min(sources, key=lambda source: source.number)
    if not event.extent.nan:
        return first
    # A NaN came of infinities that somebody wanted.
    if len(sources) > 1:
        return Origin(number)
    if first.outside is not None:
        return Origin(first.number, first.outside)
    edit = events[first.number]
    return Origin(first.number if edit.in_place and edit.operation in EDITS else number)


def _are_masks(sources: Sequence[Origin], events: Sequence[TracedOperation]) -> bool:
    """Whether all is a mask; that of ones and zeros is made one by a logarithm."""
    return bool(sources) and all(
        source.deliberate
        or (
            source.outside is None
            and events[source.number].operation in LOGARITHMS
            and events[source.number].extent.only_below
        )
        for source in sources
    )


def _from(number: int, outside: Outside) -> Origin:
    """A tensor with -inf is a mask, a plain number was written down; what else is a fault."""
    wanted = outside.owner.role in ("input", "buffer", "constant") and outside.extent.only_below
    wanted = wanted or (outside.owner.role == "constant" and not outside.extent.nan)
    return Origin(number, outside, deliberate=wanted)


def _ancestors(events: Sequence[TracedOperation], number: int) -> Iterator[int]:
    waiting, seen = [number], {number}
    while waiting:
        current = waiting.pop()
        yield current
        for parent in events[current].parents:
            if isinstance(parent.source, int) and parent.source not in seen:
                seen.add(parent.source)
                waiting.append(parent.source)
