"""Validation batches: those of a second loader, made ready by the script's own statements."""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils.data import DataLoader

from holter.experiments.recognition.capturing import Capture, Ready
from holter.experiments.recognition.kinds import tensors
from holter.experiments.recognition.randomness import draw_from
from holter.experiments.recognition.replaying import Replay
from holter.experiments.recognition.session import Seen
from holter.experiments.recognition.verifying import same
from holter.experiments.setup import Setup

_VALID = ("val", "dev", "eval", "test")  # parts of names of loaders, the likeliest first

Prepare = Callable[[object], dict[str, Any]]


class Prepared:
    """Batches of a loader, turned into the variables of a step."""

    def __init__(self, loader: DataLoader[Any], prepare: Prepare) -> None:
        self._loader, self._prepare = loader, prepare

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for delivered in self._loader:
            yield self._prepare(delivered)

    def __len__(self) -> int:
        return len(self._loader)


def with_validation(
    setup: Setup, seen: Sequence[Seen], replays: Sequence[Replay], notes: list[str]
) -> Setup:
    """The setup with validation batches, if there is a second loader that fits."""
    loader = _validation_loader(setup.loaders["train"], seen)
    if loader is None:
        return setup
    setup = replace(setup, loaders={**setup.loaders, "valid": loader})
    if len(replays) > 1:
        notes.append("Batches of the validation loader are not made for several losses a step.")
        return setup
    prepare = _preparation(seen[0].capture, replays[0])
    if prepare is None:
        notes.append("How a batch of the validation loader reaches the loss could not be seen.")
        return setup
    valid = Prepared(loader, prepare)
    try:
        with torch.no_grad():
            fits = replays[0](next(iter(valid))).numel() == 1
    except Exception:
        fits = False
    if not fits:
        notes.append("Batches of the validation loader do not fit the training step.")
        return setup
    return replace(setup, valid=valid)


def _preparation(capture: Capture, replay: Replay) -> Prepare | None:
    """How a batch of the training loader becomes the variables of a step: proven on one."""
    assert capture.proof is not None
    own = replay.batch(capture.proof.row)
    for ready, with_data in ((capture.entry, True), (capture.ready, False)):
        if ready is not None and _gives(own, replay, ready, with_data=with_data):
            return _preparing(replay, ready, with_data=with_data)
    return None


def _gives(own: Mapping[str, Any], replay: Replay, ready: Ready, *, with_data: bool) -> bool:
    draw_from(ready.random)
    try:
        again = _preparing(replay, ready, with_data=with_data)(ready.delivered)
    except Exception:
        return False
    return all(same(tensors(again[key]), tensors(value)) for key, value in own.items())


def _preparing(replay: Replay, ready: Ready, *, with_data: bool) -> Prepare:
    return lambda delivered: replay.prepared(ready.match.bind(delivered), with_data=with_data)


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
