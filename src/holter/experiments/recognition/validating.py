"""Validation batches: those of a second loader, made ready by the script's own statements."""

import gc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils.data import DataLoader

from holter.experiments.recognition.preparing import Prepare
from holter.experiments.recognition.session import Seen
from holter.experiments.setup import Setup

_VALID = ("val", "dev", "eval", "test")  # parts of names of loaders, the likeliest first


class Prepared:
    """Batches of a loader, turned into the variables of a step."""

    def __init__(self, loader: DataLoader[Any], prepare: Prepare) -> None:
        self._loader, self._prepare = loader, prepare

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for delivered in self._loader:
            yield self._prepare(delivered)

    def __len__(self) -> int:
        return len(self._loader)


def with_validation(setup: Setup, seen: Sequence[Seen], notes: list[str]) -> Setup:
    """The setup with validation batches, if there is a second loader that fits."""
    loader = _validation_loader(setup.loaders["train"], seen) if setup.loaders else None
    if loader is None:
        return setup
    setup = replace(setup, loaders={**setup.loaders, "valid": loader})
    if setup.prepare is None:
        notes.append("How a batch of the validation loader reaches the loss could not be seen.")
        return setup
    valid = Prepared(loader, setup.prepare)
    try:
        with torch.no_grad():
            fits = setup.loss(next(iter(valid))).numel() == 1
    except Exception:
        fits = False
    if not fits:
        notes.append("Batches of the validation loader do not fit the training step.")
        return setup
    return replace(setup, valid=valid)


def _validation_loader(train: DataLoader[Any], seen: Sequence[Seen]) -> DataLoader[Any] | None:
    """The one other loader, or of several the one that is named like one."""
    loaders: dict[int, DataLoader[Any]] = {
        id(each): each
        for each in gc.get_objects()
        if issubclass(type(each), DataLoader) and each.dataset is not train.dataset
    }
    if len(loaders) == 1:
        return next(iter(loaders.values()))
    named = [pair for each in seen for pair in _named(each)]
    for part in _VALID:
        fitting = {id(value) for name, value in named if part in name.lower()} & set(loaders)
        if len(fitting) == 1:
            return loaders[fitting.pop()]
    return None


def _named(seen: Seen) -> Iterator[tuple[str, Any]]:
    """The variables of a script, and what its objects and dictionaries hold, by name."""
    for name, value in {**seen.frame.f_globals, **(seen.names or {})}.items():
        yield name, value
        if isinstance(value, dict):
            yield from ((key, each) for key, each in value.items() if isinstance(key, str))
        elif name == "self" and hasattr(value, "__dict__"):
            yield from vars(value).items()
