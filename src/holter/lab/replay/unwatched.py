"""Unwatched: stands in for a watch while a script is run again to replay what was recorded."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from holter.watching.collectors.roster import Roster
from holter.watching.watch import Models, Optimizers, labelled


class Unwatched:
    """Has every public name of a `Watch` and records nothing; the roster is kept for setups."""

    steps = 0
    backwards = 0
    coming_step = 0
    has_trained = False
    is_open = False

    def __init__(
        self, model: Models, optimizer: Optimizers, path: str | Path | None = None, **_: Any
    ) -> None:
        self.path = Path(path) if path is not None else Path("holter-runs", "unwatched")
        self.roster = Roster()
        self.add(model, optimizer)

    def __enter__(self) -> "Unwatched":
        return self

    def __exit__(self, *_: object) -> None: ...

    def add(self, models: Models, optimizers: Optimizers) -> None:
        """Put models and optimizers on the roster."""
        self.roster = self.roster.joined_by(labelled(models), labelled(optimizers))

    def replace(self, models: Sequence[nn.Module], fresh: Sequence[nn.Module]) -> None:
        """Put models on the roster in place of others."""
        self.roster = self.roster.without(models)
        self.add(fresh, [])

    def trains_by_hand(self) -> bool:
        """Know of no training."""
        return False

    def follow(self, *_: Any, **__: Any) -> None:
        """Follow nothing."""

    def release(self) -> None:
        """Let go of nothing."""

    def send(self, scout: object) -> None:
        """Let nobody look for models."""

    def hear_loaders(self, listener: object) -> None:
        """Tell of no loader."""

    def splits(self) -> tuple[None, list[int]]:
        """Know of no data."""
        return None, []

    def log(self, **_: Any) -> None:
        """File nothing."""

    def note(self, sentence: str) -> None:
        """Keep nothing."""

    def capture(self) -> None:
        """Write nothing."""

    def paused(self) -> contextlib.AbstractContextManager[None]:
        """Pause nothing."""
        return contextlib.nullcontext()

    def close(self, **_: Any) -> None:
        """Close nothing."""
