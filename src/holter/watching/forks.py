"""Forks: whether this is still the process that something was made in, without asking the system.

A forked worker inherits taps and listeners, and must be left alone. To ask for the number of the
process takes a call of the system, several times in every step.
"""

import os


class Home:
    """The process that something was made in; in a child that is forked from it, it is left."""

    __slots__ = ("is_left",)

    def __init__(self) -> None:
        self.is_left = False


class _Homes:
    """Of each process one, because all that was made in it is left at once."""

    def __init__(self) -> None:
        self.current = Home()
        register = vars(os).get("register_at_fork")  # Windows has no forks
        if register is not None:
            register(after_in_child=self._forked)

    def _forked(self) -> None:
        self.current.is_left = True
        self.current = Home()


_homes = _Homes()  # what is called at a fork is registered for the life of the process


def home() -> Home:
    """Return the process that runs now."""
    return _homes.current
