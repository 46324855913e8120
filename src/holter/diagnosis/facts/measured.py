"""Evaluation passes whose predictions were counted, and which of them is the validation."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holter.diagnosis.facts.evaluations import splits_of
from holter.record import Event
from holter.record.evaluations import parts_of
from holter.record.events import PassMeasured

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts


@dataclass(frozen=True, slots=True)
class Measured:
    """The counted passes of one loss function over some data, in their order."""

    owner: str
    function: str
    data: str
    split: str  # train, validation or test, if the script names it
    passes: tuple[Event[PassMeasured], ...]

    @property
    def last(self) -> PassMeasured:
        """What was counted of the last pass."""
        return self.passes[-1].what


def measured(facts: "Facts") -> list[Measured]:
    """Return all counted passes by owner; of a model with several heads, those of each."""
    splits = splits_of(facts)
    passes: dict[tuple[str, object], list[Event[PassMeasured]]] = {}
    for event in facts.run.events_of(PassMeasured):
        passes.setdefault((event.what.owner, _head(event.what)), []).append(event)
    found = []
    for (owner, _), events in passes.items():
        function, data = parts_of(owner)
        found.append(Measured(owner, function, data, splits.get(data, ""), tuple(events)))
    return found


def measured_validation(facts: "Facts") -> Measured | str:
    """Return the counted passes of the validation, or why there are none."""
    passes = facts.measured
    if not passes:
        return "no predictions of an evaluation pass were recorded"
    evaluation = facts.evaluation
    if isinstance(evaluation, str):
        return evaluation
    held_out = [one for one in passes if one.split not in ("train", "test")]
    own = [one for one in passes if one.owner == evaluation.owner] if evaluation.owner else held_out
    if len(own) != 1:
        return f"{len(own)} evaluation passes were counted that may be the validation"
    return own[0]


def _head(what: PassMeasured) -> object:
    """What tells heads of one loss function apart: the number of their outputs."""
    if what.classes is not None:
        return what.classes.number
    units = what.scores or what.numbers
    return None if units is None else units.units
