"""Unwatched: stands in for a watch while a script is run again to replay what was recorded."""

from typing import Any


class Unwatched:
    """Takes every call of a watch, and does nothing."""

    path = None
    steps = 0

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __enter__(self) -> "Unwatched":
        return self

    def __exit__(self, *_: object) -> None: ...

    def add(self, *_: Any, **__: Any) -> None:
        """Nothing is watched."""

    def log(self, **_: Any) -> None:
        """Nothing is filed."""

    def note(self, sentence: str) -> None:
        """Nothing is kept."""

    def capture(self) -> None:
        """Nothing is written."""

    def close(self, **_: Any) -> None:
        """There is nothing to close."""
