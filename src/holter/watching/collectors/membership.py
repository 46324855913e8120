"""Which parameters are trainable, in a model, and in an optimizer."""

from collections.abc import Iterable
from typing import ClassVar

from holter.record.signals import (
    PARAMETER_GIVEN,
    PARAMETER_IN_MODEL,
    PARAMETER_OPTIMIZER,
    PARAMETER_TRAINABLE,
    Signal,
)
from holter.watching.collectors import Reading
from holter.watching.collectors.moments import BeforeUpdate, Depth
from holter.watching.collectors.roster import trains


class Membership:
    """Writes the facts at the first step, and again when one of them changes."""

    emits: ClassVar[tuple[Signal, ...]] = (
        PARAMETER_TRAINABLE,
        PARAMETER_OPTIMIZER,
        PARAMETER_IN_MODEL,
        PARAMETER_GIVEN,
    )
    at: ClassVar[tuple[type, ...]] = (BeforeUpdate,)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()  # of the roster last written: each roster has its own
        self._trainable: list[bool] = []

    def read(self, moment: BeforeUpdate) -> Iterable[Reading]:
        """A value for each parameter on the roster."""
        roster = moment.roster
        trainable = [trains(parameter) for parameter in roster.parameters]
        if roster.names is self._names and trainable == self._trainable:
            return
        self._names, self._trainable = roster.names, trainable
        yield Reading(PARAMETER_TRAINABLE, roster.names, trainable)
        yield Reading(PARAMETER_OPTIMIZER, roster.names, roster.optimizers)
        yield Reading(PARAMETER_IN_MODEL, roster.names, roster.in_model)
        yield Reading(PARAMETER_GIVEN, roster.names, roster.given)
