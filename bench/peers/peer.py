"""A peer: a tool that watches trainings, what it looks at, and what its alarms mean."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something a tool said of a run; a note is below its own level of a warning."""

    name: str
    note: bool = False
    step: int | None = None  # the first at which it was said, where the tool tells

    def __str__(self) -> str:
        return f"{self.name}/note" if self.note else self.name


@dataclass(frozen=True, slots=True)
class Peer:
    """A tool; `means` gives for each of its alarms the rules of ours that it counts as naming.

    `advice` is what it says of speed or style and not of the training: true or not, it counts
    neither as an answer nor as a false alarm.
    """

    name: str
    covers: str
    means: Mapping[str, tuple[str, ...]]
    advice: frozenset[str] = frozenset()

    def names(self, alarms: Iterable[Alarm], right: Iterable[str]) -> bool:
        """Whether any of the alarms points to one of the right answers."""
        meant = {rule for alarm in alarms for rule in self.means.get(alarm.name, ())}
        return not meant.isdisjoint(right)

    def has_alarm_for(self, right: Iterable[str]) -> bool:
        """Whether it has any alarm that points to one of the right answers."""
        return any(not set(rules).isdisjoint(right) for rules in self.means.values())
