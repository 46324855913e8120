"""Validation batches: those of a second loader, made ready by the script's own statements."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

import torch
from torch.utils.data import DataLoader

from holter.lab.setup import Setup
from holter.scripts.recognition.preparing import Prepare
from holter.scripts.recognition.session import Seen

_VALID = [  # names of loaders, the likeliest first: val_loader, loader["val"], testloader
    re.compile(rf"(?<![a-z]){name}(?![a-z])|(?<![a-z]){name}(?=(data|loader|dl|iter|batch))")
    for name in ("val(id|idation)?", "dev", "eval(uation)?", "test(ing)?")
]


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
    """The one loader of other data that is named like it; a name that says less may mislead."""
    named = [
        (name, value)
        for each in seen
        for name, value in _named(each)
        if issubclass(type(value), DataLoader) and value.dataset is not train.dataset
    ]
    for valid in _VALID:
        fitting: dict[int, DataLoader[Any]] = {
            id(value): value for name, value in named if valid.search(name.lower())
        }
        if len(fitting) == 1:
            return next(iter(fitting.values()))
    return None


def _named(seen: Seen) -> Iterator[tuple[str, Any]]:
    """The variables of a step and of its callers, and what their objects and dictionaries hold."""
    frame: FrameType | None = seen.frame
    variables = dict(seen.names or {})
    while frame is not None:
        variables = {**frame.f_globals, **frame.f_locals, **variables}
        frame = frame.f_back
    for name, value in variables.items():
        yield name, value
        if isinstance(value, dict):
            yield from ((key, each) for key, each in value.items() if isinstance(key, str))
        elif name == "self" and hasattr(value, "__dict__"):
            yield from vars(value).items()
