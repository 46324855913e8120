"""Event: one line of `events.jsonl`, and the classes of all that it may say."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from holter.record.typed import from_json, to_json

KINDS: dict[str, type["Occurrence"]] = {}  # by the name that is on disk


class Occurrence:
    """What an event says, without its time. A class with a `kind` is found by it."""

    __slots__ = ()
    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        if cls.kind:
            KINDS[cls.kind] = cls


What = TypeVar("What", bound=Occurrence)
What_co = TypeVar("What_co", bound=Occurrence, covariant=True)


@dataclass(frozen=True, slots=True)
class Event(Generic[What_co]):
    """An occurrence, the step that was open, and the time."""

    step: int
    wall: float
    what: What_co

    def to_json(self) -> dict[str, Any]:
        """Return the line of `events.jsonl`."""
        if isinstance(self.what, Unknown):
            kind, data = self.what.name, self.what.data
        else:
            kind, data = self.what.kind, to_json(self.what)
        return {"step": self.step, "wall": self.wall, "kind": kind, **data}

    @staticmethod
    def of(line: Mapping[str, Any]) -> "Event[Occurrence]":
        """Read a line of `events.jsonl`; raises if it lacks step, time or kind."""
        step, wall, kind = int(line["step"]), float(line["wall"]), str(line["kind"])
        cls = KINDS.get(kind)
        if cls is not None:
            return Event(step, wall, from_json(cls, line))
        data = {key: value for key, value in line.items() if key not in ("step", "wall", "kind")}
        return Event(step, wall, Unknown(kind, data))


@dataclass(frozen=True, slots=True)
class Unknown(Occurrence):
    """An event of another version of holter."""

    kind: ClassVar[str] = ""
    name: str  # its kind
    data: Mapping[str, Any]
