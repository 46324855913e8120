"""Steps that a training took twice: those before it was resumed from an older checkpoint go."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from holter.record.events import Event, Occurrence, RolledBack
from holter.record.segment import Segment


@dataclass(frozen=True, slots=True)
class Rollbacks:
    """The rollbacks of a run: what was recorded before one, of its step and later, is discarded."""

    events: tuple[Event[Occurrence], ...] = ()

    def applied(self, segment: Segment) -> Segment:
        """Return the segment without discarded records."""
        if segment.header.stream == "trials":  # which have steps of their own
            return segment
        keep = np.ones(len(segment.records), np.bool_)
        for event in self.events:
            assert isinstance(event.what, RolledBack)
            walls, steps = segment.records["wall"], segment.records["step"]
            keep &= (walls >= event.what.opened) | (steps < event.step)
        return segment if keep.all() else replace(segment, records=segment.records[keep])


def without_discarded(
    events: Sequence[Event[Occurrence]],
) -> tuple[tuple[Event[Occurrence], ...], Rollbacks]:
    """Return the events that hold, and the rollbacks that discarded the others.

    What happened while a training was loaded has the step at which it then went on.
    """
    kept = list(events)
    back = [event for event in events if isinstance(event.what, RolledBack)]
    for event in back:
        assert isinstance(event.what, RolledBack)
        opened = event.what.opened
        kept = [
            replace(each, step=event.step) if opened <= each.wall <= event.wall else each
            for each in kept
            if each.wall >= opened or each.step < event.step
        ]
    return tuple(kept), Rollbacks(tuple(back))
