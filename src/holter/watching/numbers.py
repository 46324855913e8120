"""Numbers of parameter groups, such as learning rates, compared with what they were at once."""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

Group = Mapping[str, Any]


class GroupNumbers:
    """The numbers of an optimizer's groups as they are when this is made."""

    __slots__ = ("_known",)

    def __init__(self, groups: Sequence[Group]) -> None:
        self._known = list(map(_known, groups))

    def are_those_of(self, groups: Sequence[Group]) -> bool:
        """Whether these groups have the same numbers; a tensor among them counts as a change."""
        if len(groups) != len(self._known):
            return False
        for group, (length, read, numbers) in zip(groups, self._known, strict=True):
            if len(group) != length or numbers is None or read(group) != numbers:
                return False
        return True


def names_of_settings(group: Group) -> list[str]:
    """Return the names of a group's numbers besides the learning rate."""
    return [
        name
        for name, value in group.items()
        if name not in ("params", "lr")
        and isinstance(value, float | int | tuple)  # a weight decay of 0 is an int by default
        and not isinstance(value, bool)
    ]


def _known(group: Group) -> tuple[int, Callable[[Group], object], object]:
    """Return how many keys a group has, what reads its numbers, and these; None if not to know."""
    if "lr" not in group or not isinstance(group["lr"], float | int):
        return len(group), len, None  # a tensor may be written to
    read = itemgetter("lr", *names_of_settings(group))
    return len(group), read, read(group)
