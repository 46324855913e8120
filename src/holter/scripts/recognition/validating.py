"""Validation batches: those of a second loader, made ready by the script's own statements."""

import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from types import FrameType
from typing import Any

import torch
from torch.utils.data import DataLoader

from holter.lab.setup import Setup
from holter.scripts.recognition.kinds import is_ours
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
    asked: set[int] = set()  # trainers: some make a new loader each time
    named = [
        (name, value)
        for each in seen
        for name, value in _named(each, asked)
        if isinstance(value, DataLoader) and value.dataset is not train.dataset
    ]
    for valid in _VALID:
        fitting: dict[int, DataLoader[Any]] = {
            id(value): value for name, value in named if valid.search(name.lower())
        }
        if len(fitting) == 1:
            return next(iter(fitting.values()))
    return None


def _named(seen: Seen, asked: set[int]) -> Iterator[tuple[str, Any]]:
    """The variables of a step and of all callers, and what their objects and dictionaries hold."""
    known: set[int] = set()
    for frame in (*_frames(seen.frame), *_frames(sys._getframe())):  # noqa: SLF001
        if id(frame) in known or is_ours(frame.f_code.co_filename):
            continue
        known.add(id(frame))
        own = seen.names or {} if frame is seen.frame else {}
        for name, value in {**frame.f_globals, **frame.f_locals, **own}.items():
            yield name, value
            if isinstance(value, dict):
                yield from ((key, each) for key, each in value.items() if isinstance(key, str))
            elif name == "self" and hasattr(value, "__dict__"):
                yield from vars(value).items()
            if id(value) not in asked:
                asked.add(id(value))
                yield from _of_trainer(value)


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame and its callers: at a pause those of the script are above those of holter."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _of_trainer(value: Any) -> Iterator[tuple[str, Any]]:
    """The validation loader that a library's trainer makes or keeps."""
    with suppress(Exception):  # it may not be ready to
        if vars(value).get("eval_dataset") is not None:  # Transformers
            yield "eval_dataloader", value.get_eval_dataloader()
        loaders = inspect.getattr_static(type(value), "val_dataloaders", None)  # Lightning
        if isinstance(loaders, property):
            found = value.val_dataloaders
            for each in found if isinstance(found, list | tuple) else [found]:
                yield "val_dataloader", each
