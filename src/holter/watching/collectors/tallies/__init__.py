"""Sums over the predictions and targets of an evaluation pass, kept on their device."""

from typing import Protocol

import torch
from torch import Tensor

from holter.record.events import PassMeasured
from holter.record.format import Floats
from holter.record.signals import Signal
from holter.watching.collectors.loss_calls import Family, Given
from holter.watching.collectors.tallies.binary import BinaryTally
from holter.watching.collectors.tallies.classes import ClassTally
from holter.watching.collectors.tallies.numbers import NumberTally

_KINDS: dict[Family, type[ClassTally] | type[BinaryTally] | type[NumberTally]] = {
    Family.CLASSES: ClassTally,
    Family.BINARY: BinaryTally,
    Family.NUMBERS: NumberTally,
}


class PassTally(Protocol):
    """The sums of one pass: bounded in memory, never read before they have left the device."""

    def add(self, call: Given, width: int | None) -> None:
        """Count a call; `width` is the length of the sequences its targets are rows of, if any."""

    def readings(self) -> dict[Signal, Tensor]:
        """Return the signals of the pass, one value each."""

    def values(self) -> Tensor:
        """Return all sums in a row."""

    def told(self, owner: str, values: Floats) -> PassMeasured | None:
        """Return what the sums amount to once they are on the host; None if nothing was counted."""


def tally_of(call: Given) -> PassTally | None:
    """Return a tally for calls like this one, or None if they cannot be counted."""
    kind = _KINDS[call.family]
    if not kind.counts(call):
        return None
    with torch.inference_mode(mode=False):  # sums of inference mode could not be changed later
        return kind(call)
