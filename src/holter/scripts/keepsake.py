"""Keepsake: a model, one of its calls and the loaders of a script, kept until it has ended."""

import copy
import itertools
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Subset

from holter.lab.batches import cloned, leaves, tensors
from holter.lab.setup import Roles
from holter.record.signals import Signal
from holter.scripts.rows import Rows
from holter.scripts.scores import scores_of
from holter.scripts.twins import Sketch, sketch_of
from holter.watching.collectors import Reading
from holter.watching.collectors.calls import Calls, is_compiled
from holter.watching.collectors.duplicates import copies_of
from holter.watching.collectors.inputs import roots
from holter.watching.collectors.lane import Delivery, Lane
from holter.watching.collectors.moments import (
    AfterUpdate,
    BackwardBegins,
    Closing,
    Depth,
    Joined,
    LossComputed,
)
from holter.watching.collectors.roster import Roster
from holter.watching.frames import Frames

if TYPE_CHECKING:
    from holter.watching.frames import Chain

_KEPT = 2**28  # bytes of a model that is kept after the script has dropped it
_CALL = 2**26  # bytes of the arguments of one call, and of what it returns
_TRIES = 6  # steps in which a call of a whole model is looked for
_FIRST = 2  # updates after which the weights are still nearly those of the start
_MODELS = 4  # whose calls are kept until the loss tells which of them it is made of
_LOADERS = 4  # that are kept
_NEAREST = 3  # functions of the script that are searched for an index
_PLACES = (torch.int64, torch.int32)
_DISTINCT = 0.9  # share of an index that is not there twice, where it was drawn at random

_Arguments = tuple[tuple[Any, ...], dict[str, Any]]
_Moment = Joined | AfterUpdate | LossComputed | BackwardBegins | Closing


@dataclass(frozen=True, slots=True)
class TrainingCall:
    """A call of a model in training, and of the loss function after it.

    `later` are the arguments of a call in a later step, if there was one; `batch` is what a loader
    delivered for it.
    """

    arguments: _Arguments
    training: frozenset[str]  # the modules in train mode
    output: Any
    loss: tuple[str, dict[str, Any]] | None
    later: _Arguments | None = None
    batch: Any = None
    samples: "Drawn | None" = None  # of the batch, by an index of the script

    @property
    def roles(self) -> Roles | None:
        """Which tensors of a batch the loss function takes as target, and which the model is given.

        Read after the training, because it waits for the device.
        """
        target = None if self.loss is None else self.loss[1].get("target")
        if not isinstance(target, Tensor) or self.batch is None:
            return None
        held = leaves(self.batch)
        aims = [path for path, leaf in held.items() if same_numbers(leaf, target)]
        if not aims:
            return None
        given = tensors(self.arguments)
        known = [
            path
            for path, leaf in held.items()
            if path != aims[0] and any(same_numbers(leaf, each) for each in given)
        ]
        others = [
            each for each in given if not any(same_numbers(leaf, each) for leaf in held.values())
        ]
        return Roles(aims[0], () if others else tuple(known))

    @property
    def varies(self) -> bool:
        """Whether another step is known to give the model something else: not all nodes of a graph.

        Read after the training, because it waits for the device.
        """
        if self.later is None:
            return False
        pairs = zip(tensors(self.arguments), tensors(self.later), strict=False)
        return any(a.shape != b.shape or not torch.equal(a, b) for a, b in pairs)


class Drawn(NamedTuple):
    """The samples of a batch, by the index that the script draws them with."""

    samples: int
    shuffled: bool  # the index is out of order, and has nearly no place twice


class _KeptLoader(NamedTuple):
    own: "weakref.ref[DataLoader[Any]]"  # of the script
    twin: DataLoader[Any]
    chain: "Chain"  # where it was begun
    aside: bool  # in evaluation


class Keepsake:
    """Keeps a model, one of its calls in training and the loaders until the script has ended.

    A model of moderate size is kept even if the script drops it, others only as long as it lives.
    It listens to the first steps alone.
    """

    emits: ClassVar[tuple[Signal, ...]] = ()
    at: ClassVar[tuple[type, ...]] = (Joined, AfterUpdate, LossComputed, BackwardBegins, Closing)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self.declined: list[str] = []
        self.call: TrainingCall | None = None
        self.initial: Sketch | None = None  # of the weights, if hardly updated before
        self.copies: list[nn.Module] = []  # of the model
        self.rows = Rows()
        self._model: nn.Module | weakref.ref[nn.Module] | None = None
        self._calls: Calls[str] = Calls(self._heard, self._returned)
        self._tries, self._updates = _TRIES, 0
        self._found: list[tuple[nn.Module, _Arguments, Any]] = []  # the first call of each model
        self._samples: dict[int, Drawn | None] = {}  # of these calls, by the identity of the model
        self._loss: tuple[str, dict[str, Any]] | None = None
        self._loaders: list[_KeptLoader] = []
        self._batch: Any = None
        self._lane: Lane | None = None

    def join(self, lane: Lane) -> None:
        """Hear of training batches until a call was kept."""
        self._lane = lane
        lane.at_batch.append(self._fetched)

    def _fetched(self, delivery: Delivery) -> None:
        self._batch = delivery.batch
        if not self._tries and self._lane is not None:
            heard = self._lane.at_batch
            self._lane.at_batch = [hear for hear in heard if hear != self._fetched]
            self._batch = None

    @property
    def spent(self) -> float:
        """Seconds inside the hooks, which no moment sees."""
        return self._calls.spent

    @property
    def model(self) -> nn.Module | None:
        """The model that was called, if it is still there."""
        return self._model() if isinstance(self._model, weakref.ref) else self._model

    def loader_begins(self, loader: DataLoader[Any], chain: "Chain", aside: bool) -> None:
        """Keep a copy, in the place of those that were used there before and no longer exist.

        Not the loader itself: the recording tells from its end that another takes its place.
        """
        self._loaders = [
            each
            for each in self._loaders
            if (each.chain, each.aside) != (chain, aside) or each.own() not in (None, loader)
        ]
        try:
            twin = copy.copy(loader)
            twin.__dict__["_iterator"] = None  # and its workers
        except Exception:  # a library's own kind: its data are not examined
            return
        kept = _KeptLoader(weakref.ref(loader), twin, chain, aside)
        self._loaders = [*self._loaders, kept][-_LOADERS:]

    def loaders(self, training: "Chain | None", others: Iterable["Chain"]) -> dict[str, Any]:
        """The loaders of training and of validation, as far as they are known.

        Where no loss tells what is evaluated, validation is what was read aside last. What was
        trained on is not.
        """
        latest = [*reversed(self._loaders)]
        train = next((k.twin for k in latest if k.chain == training and not k.aside), None)
        aside = [k for k in latest if k.aside]
        if train is not None:
            aside = [k for k in aside if not _share_data(k.twin, train)]
        aside = [k for chain in others for k in aside if k.chain == chain] or aside
        found = {"train": train, "valid": aside[0].twin if aside else None}
        return {name: loader for name, loader in found.items() if loader is not None}

    def read(self, moment: _Moment) -> Iterable[Reading]:
        """Listen to the calls of a step until one of a whole model was heard."""
        if not self._tries:
            return ()
        if isinstance(moment, LossComputed):
            self._loss = self._loss or (moment.function, dict(moment.arguments))
        elif isinstance(moment, BackwardBegins):
            if moment.opens_step and self._calls.listens:
                self._keep()
        else:
            self._updates += isinstance(moment, AfterUpdate)
            self._forget()
            if isinstance(moment, Closing):
                return ()
            depth = moment.depth if isinstance(moment, Joined) else moment.next_depth
            if depth >= self.depth:
                self._listen(moment.roster)
        return ()

    def _listen(self, roster: Roster) -> None:
        if not any(is_compiled(model.module) for model in roster.models):
            self._calls.know(roots(roster))
            self._calls.listen()

    def _forget(self) -> None:
        self._calls.stop()
        self._found, self._loss = [], None

    def _heard(self, _: str, module: nn.Module, __: Any) -> bool:
        known = len(self._found) == _MODELS or any(module is model for model, _, _ in self._found)
        return not torch.is_grad_enabled() or not module.training or known

    def _returned(self, _: str, module: nn.Module, arguments: _Arguments, output: Any) -> None:
        if _bytes((arguments, output)) <= _CALL:
            self._found.append((module, cloned(arguments), cloned(output)))
            if self.call is None and self._batch is None:
                self._samples[id(module)] = indexed_samples(arguments, Frames())

    def _keep(self) -> None:
        found, loss = self._found, self._loss
        self._forget()
        self._tries -= 1
        if self.call is not None:
            again = [given for model, given, _ in found if model is self.model]
            if again:
                self.call = replace(self.call, later=again[0])
                self._tries = 0
                self._keep_copies()
            return
        if not found:
            return
        given = None if loss is None else loss[1].get("input")
        # Of an encoder and a decoder, the loss is made of what the decoder returns.
        scored = [call for call in found if scores_of(call[2], given) is not None]
        model, arguments, output = (scored or found)[0]
        small = _bytes(list(model.parameters())) <= _KEPT
        self._model = model if small else weakref.ref(model)
        kept = loss if loss is not None and _bytes(loss[1]) <= _CALL else None
        training = frozenset(name for name, each in model.named_modules() if each.training)
        if self._updates <= _FIRST:
            self.initial = sketch_of(model)
        copied = kept and (kept[0], cloned(kept[1]))
        batch = cloned(self._batch) if _bytes(self._batch) <= _CALL else None
        samples = self._samples.get(id(model))
        self.call = TrainingCall(arguments, training, output, copied, batch=batch, samples=samples)
        self._samples.clear()

    def _keep_copies(self) -> None:
        """Keep small copies of the model: those of a function are gone when it has returned."""
        model = self.model
        if model is not None and self.initial is not None:
            small = _bytes(list(model.parameters())) <= _KEPT // _MODELS
            self.copies = copies_of(model)[:_MODELS] if small else []


def indexed_samples(arguments: _Arguments, frames: Frames) -> Drawn | None:
    """Return the samples of a call by the index that the script has drawn them with.

    A script that slices batches by hand has a list of their places, `x[index]`, as long as the
    dimension of the samples; labels and lengths of sequences are as long. None if both of the first
    two dimensions, or none, have the length of such a list.
    """
    shapes = [leaf.shape for leaf in tensors(arguments) if leaf.dim() > 1]
    if not shapes or shapes[0][0] == shapes[0][1]:
        return None
    wanted = frozenset(shapes[0][:2])
    lists: dict[int, bool] = {}  # whether one of them is shuffled, by their length
    for frame in itertools.islice(frames.all(), _NEAREST):
        for length, shuffled in frames.read(frame, partial(_lists, lengths=wanted)):
            lists[length] = lists.get(length, False) or shuffled
    found = [length for length in shapes[0][:2] if length in lists]
    return Drawn(int(found[0]), lists[found[0]]) if len(found) == 1 and found[0] > 1 else None


def _lists(variables: Mapping[str, Any], lengths: frozenset[int]) -> list[tuple[int, bool]]:
    """Return the lists of whole numbers of some lengths among variables, and which are shuffled."""
    return [
        (len(value), _is_shuffled(value))
        for value in variables.values()
        if _are_places(value) and len(value) in lengths
    ]


def _are_places(value: Any) -> bool:
    return (
        (isinstance(value, Tensor) and value.dim() == 1 and value.dtype in _PLACES)
        or (isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iu")
        or (type(value) is list and bool(value) and type(value[0]) is int)
    )


def _is_shuffled(places: Any) -> bool:
    """Whether whole numbers are out of order and differ, as those of a random index do."""
    if isinstance(places, Tensor) and not places.is_cpu:
        return False  # to read them would wait for the device
    try:
        values = np.asarray(places)
        return bool(
            (np.diff(values) < 0).any() and len(np.unique(values)) >= _DISTINCT * len(values)
        )
    except (TypeError, ValueError):  # a list that begins with a number
        return False


def same_numbers(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors hold the same numbers in the same order, whatever their shape and type.

    The target of a hand-written loss is known up to rounding.
    """
    if one.numel() != other.numel() or not one.numel():
        return False
    first, second = (each.detach().cpu().reshape(-1).double() for each in (one, other))
    return bool((first - second).abs().max() <= 1e-5 * second.abs().max())


def _share_data(one: DataLoader[Any], other: DataLoader[Any]) -> bool:
    """Whether two loaders serve the same data set, the same part of one, or the same tensors."""
    first, second = one.dataset, other.dataset
    if first is second:
        return True
    if isinstance(first, Subset) and isinstance(second, Subset):
        return first.dataset is second.dataset and list(first.indices) == list(second.indices)
    held = [{each.data_ptr() for each in _tensors_of(data)} for data in (first, second)]
    return not held[0].isdisjoint(held[1])


def _tensors_of(dataset: Any) -> list[Tensor]:
    """Return the tensors that may hold the samples: both splits may share a mean of the columns."""
    held = tensors(vars(dataset)) if hasattr(dataset, "__dict__") else []
    fewest = len(dataset) if hasattr(dataset, "__len__") else 1
    return [each for each in held if each.numel() >= max(fewest, 1)]


def _bytes(value: Any) -> int:
    return sum(each.numel() * each.element_size() for each in tensors(value))
