"""Numbers of parameter groups, such as learning rates, compared with what they were at once."""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

Group = Mapping[str, Any]
_NUMBERS = (float, int, tuple)  # not a union, which takes longer to tell


class GroupNumbers:
    """The numbers of an optimizer's groups as they are when this is made; perhaps without rates."""

    __slots__ = ("_known",)

    def __init__(self, groups: Sequence[Group], *, rates: bool = True) -> None:
        self._known = [_known(group, rates=rates) for group in groups]

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
        and isinstance(value, _NUMBERS)  # a weight decay of 0 is an int by default
        and not isinstance(value, bool)
    ]


def _known(group: Group, *, rates: bool) -> tuple[int, Callable[[Group], object], object]:
    """Return how many keys a group has, what reads its numbers, and these; None if not to know."""
    if "lr" not in group or not isinstance(group["lr"], float | int):
        return len(group), len, None  # a tensor may be written to
    names = names_of_settings(group)
    if not names and not rates:
        return len(group), len, len(group)
    read = itemgetter(*(("lr", *names) if rates else names))
    return len(group), read, read(group)
