"""Evaluation passes: which data a loss without a backward pass is computed on."""

import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import DataLoader

from holter.record.evaluations import is_split, split_of
from holter.record.events import EvaluationSeen
from holter.watching.frames import Chain, Frames, place
from holter.watching.loaders import Iteration
from holter.watching.taps import TappedLoss

_MOST = 24  # data that are told apart: some scripts evaluate from ever new places
_TRAINING_CALLS = 3  # losses of training whose callers are looked at
_VARIABLES = ("split", "phase", "stage", "subset", "partition", "part", "fold", "mode", "name")
_OF_MODULES = _VARIABLES[:-2]  # others are settings of the whole script
_MOST_KEYS = 16  # of a mapping that is searched for a loader


@dataclass(slots=True, eq=False)
class EvaluatedData:
    """Data that losses without a backward pass are computed on, and how the script names them."""

    name: str
    split: str = ""
    by_value: bool = False
    places: tuple[str, ...] = ()  # of the script, the innermost first, when they were first seen
    function: str = ""  # that was called at a place of the script; empty for the data of a loader
    label: str = ""  # of the loader
    loader: "weakref.ref[DataLoader[Any]] | None" = None
    dataset: "weakref.ref[Any] | None" = None
    is_whole: bool = False  # all of the data set is evaluated
    chain: Chain = 0  # where the last pass was begun
    step: int = -1  # before which it was made
    is_trained_on: bool = False
    told: EvaluationSeen | None = None

    def news(self) -> EvaluationSeen | None:
        """Return what there is to tell of the data, or None if it was told."""
        if self.told is not None and self.told.trained_on == self.is_trained_on:
            return None
        self.told = EvaluationSeen(
            self.name, self.split, self.by_value, self.is_trained_on, self.places[0], self.label
        )
        return self.told


class Passes:
    """Tells evaluated data apart: by loader and data set, else by call site and named split."""

    def __init__(self) -> None:
        self._frames = Frames()
        self._all: list[EvaluatedData] = []
        self._of_loaders: weakref.WeakKeyDictionary[Any, EvaluatedData] = (
            weakref.WeakKeyDictionary()
        )
        self._trained: weakref.WeakSet[Any] = weakref.WeakSet()  # loaders of training
        self._trained_sets: list[weakref.ref[Any]] = []  # the whole of which is trained on
        self._trained_iteration: Iteration | None = None
        self._again: dict[tuple[EvaluatedData, Chain], EvaluatedData] = {}
        self._sites: dict[tuple[str, Chain, str], EvaluatedData] = {}
        self._variables: dict[Chain, tuple[int, str] | None] = {}  # code and name
        self._training_codes: set[int] = set()
        self._training_calls = 0
        self._fetched: Iteration | None = None
        self._fetch_step = -1
        self._is_aside = False  # the last batch was fetched in eval mode or without gradients
        self._training: Iteration | None = None  # the last one outside of evaluation
        self._training_since = 0  # the step before which its loader came
        self._current: tuple[Iteration, int, EvaluatedData] | None = None

    def chain(self) -> Chain:
        """Return where the script is."""
        return self._frames.chain()

    def fetched(self, iteration: Iteration, step: int, *, evaluating: bool) -> None:
        """See a batch that a loader delivers before a step."""
        self._fetched, self._fetch_step = iteration, step
        self._is_aside = evaluating or not torch.is_grad_enabled()
        if not self._is_aside and iteration is not self._training:
            if self._training is None or iteration.loader is not self._training.loader:
                self._training_since = step
            self._training = iteration

    def resume(self, step: int) -> None:
        """Take up the training: the last batch of the same pass was delivered before this step."""
        self._fetch_step = step

    def splits(self) -> tuple[Chain | None, list[Chain]]:
        """Return where passes over training data were begun, and those over other data since.

        Data that are named as validation come first.
        """
        if self._training is None:
            return None, []
        others = [
            data
            for data in self._all
            if data.label
            and not data.is_trained_on
            and data.split != "train"
            and data.step >= self._training_since
        ]
        others.sort(key=lambda data: data.split != "validation")
        return self._training.chain, [data.chain for data in others]

    def trained(self) -> None:
        """See a loss of training, which is on the batch that was fetched last."""
        iteration = self._fetched
        if iteration is not None and iteration is not self._trained_iteration:
            self._trained_iteration = iteration
            if (loader := iteration.loader()) is not None:
                self._trained.add(loader)
            dataset = iteration.dataset
            if iteration.takes_all and dataset is not None:
                others = [
                    known
                    for known in self._trained_sets
                    if known() is not None and not _are_one(known, dataset)
                ]
                self._trained_sets = [*others, dataset]
        if self._training_calls < _TRAINING_CALLS:
            self._training_calls += 1
            self._training_codes |= {id(frame.f_code) for frame in self._frames.all()}

    def data_of(self, call: TappedLoss, step: int, *, evaluating: bool) -> EvaluatedData:
        """Return the data of a loss that is computed before a step."""
        iteration = self._fetched
        if iteration is None or self._fetch_step != step:
            return self._of_site(call)
        if self._current is not None and self._current[:2] == (iteration, step):
            return self._current[2]
        # A training batch may be waiting while others are evaluated.
        is_own = iteration.step == step and not evaluating and not self._is_trained_on(iteration)
        if not self._is_aside and not is_own:
            return self._of_site(call)
        data = self._of_loader(iteration, step)
        data.is_trained_on = data.is_trained_on or self._is_trained_on(iteration)
        self._current = iteration, step, data
        return data

    def _of_loader(self, iteration: Iteration, step: int) -> EvaluatedData:
        loader = iteration.loader()
        data = None if loader is None else self._of_loaders.get(loader)
        data = data or self._made_again(iteration, step)
        if data is None:
            dataset = iteration.dataset() if iteration.dataset is not None else None
            things = tuple(thing for thing in (loader, dataset) if thing is not None)
            name = self._name_of(things) or iteration.label
            data = self._new(name, split_of(name))
        if data.step == step and data.chain != iteration.chain:
            # A further pass over the same data, for another purpose.
            again = self._again.get((data, iteration.chain))
            if again is None:
                again = self._new(data.name, data.split)
                self._again[data, iteration.chain] = again
            again.label = iteration.label
            return again
        if loader is not None:
            self._of_loaders[loader] = data
        data.loader, data.dataset = iteration.loader, iteration.dataset
        data.is_whole = iteration.takes_all
        data.chain, data.step, data.label = iteration.chain, step, iteration.label
        return data

    def _made_again(self, iteration: Iteration, step: int) -> EvaluatedData | None:
        """Return the data of an earlier loader that this one replaces, or None."""
        of_loaders = [data for data in self._all if data.loader is not None]
        gone = [data for data in of_loaders if data.loader is not None and data.loader() is None]
        for data in of_loaders:
            is_same = data in gone or (data.is_whole and iteration.takes_all)
            if is_same and _are_one(data.dataset, iteration.dataset):
                return data
        for data in gone:
            is_gone = data.dataset is None or data.dataset() is None
            if is_gone and data.chain == iteration.chain and data.step != step:
                return data
        return None

    def _is_trained_on(self, iteration: Iteration) -> bool:
        """Whether a loader delivers the data of training: all of it, not parts by a sampler."""
        if iteration.loader() in self._trained:
            return True
        return iteration.takes_all and any(
            _are_one(dataset, iteration.dataset) for dataset in self._trained_sets
        )

    def _of_site(self, call: TappedLoss) -> EvaluatedData:
        chain = self._frames.chain()
        if chain not in self._variables:
            if len(self._variables) >= _MOST:
                chain = 0
            self._variables[chain] = self._split_variable() if chain else None
        value = self._value_of(self._variables[chain])
        key = call.function, chain, value
        data = self._sites.get(key)
        if data is None:
            data = self._sites[key] = self._new_site(call, value)
        return data

    def _split_variable(self) -> tuple[int, str] | None:
        """Return the nearest variable whose value is the name of a split, as code and name."""
        for frame in self._frames.all():
            if id(frame.f_code) in self._training_codes:
                continue  # it has the same value in training
            allowed = _OF_MODULES if frame.f_code.co_name == "<module>" else None
            names = self._frames.read(
                frame,
                lambda variables: [
                    name
                    for name, value in variables.items()
                    if isinstance(value, str) and is_split(value)
                ],
            )
            names = [name for name in names if allowed is None or name in allowed]
            if names:
                known = [name for name in _VARIABLES if name in names]
                return id(frame.f_code), (known or names)[0]
        return None

    def _value_of(self, variable: tuple[int, str] | None) -> str:
        if variable is None:
            return ""
        code, name = variable
        for frame in self._frames.all():
            if id(frame.f_code) == code:
                value = self._frames.read(frame, lambda variables: variables.get(name))
                return value if isinstance(value, str) else ""
        return ""

    def _new_site(self, call: TappedLoss, value: str) -> EvaluatedData:
        function = call.function
        if value:
            return self._new(value, split_of(value), function, by_value=True)
        target = call.arguments.get("target")
        name = self._name_of((target,)) if target is not None else ""
        if split_of(name):
            return self._new(name, split_of(name), function)
        functions = [split_of(frame.f_code.co_name) for frame in self._frames.all()]
        # Functions that train may also evaluate.
        split = next((split for split in functions if split in ("validation", "test")), "")
        return self._new("", split, function)

    def _new(
        self, name: str, split: str, function: str = "", *, by_value: bool = False
    ) -> EvaluatedData:
        """Return data with a name of its own, at least for a loss function if one is given."""
        taken = {data.name for data in self._all if not function or data.function in ("", function)}
        places = [place(frame) for frame in self._frames.all()] or [""]
        if len(self._all) > _MOST:
            return self._all[-1]
        if len(self._all) == _MOST:
            name, split = "others", ""
        elif name in taken:
            others = {place for data in self._all for place in data.places}
            where = next((place for place in places if place not in others), places[0])
            name = f"{name} at {where}" if name else where
        number, base = 2, name
        while name in taken:
            name, number = f"{base} ({number})", number + 1
        data = EvaluatedData(name, split, by_value, tuple(places), function)
        self._all.append(data)
        return data

    def _name_of(self, things: tuple[object, ...]) -> str:
        """Return the name that the script gives one of some things, best one that says a split.

        The outermost says most: functions call whatever they are given `eval_dataset`.
        """
        find, frames = _Names(things), self._frames
        names = [name for frame in frames.all() for name in frames.read(frame, find)]
        telling = [name for name in names if split_of(name)]
        return (telling or names)[-1] if names else ""


class _Names:
    """Finds the names of some things among variables, attributes of `self`, keys of mappings."""

    def __init__(self, things: tuple[object, ...]) -> None:
        self._things = {id(thing) for thing in things}

    def __call__(self, variables: Mapping[str, Any]) -> list[str]:
        return list(self._among(variables))

    def _among(self, variables: Mapping[str, Any]) -> Iterator[str]:
        for name, value in list(variables.items()):
            if id(value) in self._things:
                yield name
            elif name == "self":
                attributes = getattr(value, "__dict__", {})
                yield from (key for key in list(attributes) if id(attributes[key]) in self._things)
            elif type(value) is dict and len(value) <= _MOST_KEYS:
                yield from (str(key) for key, item in value.items() if id(item) in self._things)


def _are_one(one: "weakref.ref[Any] | None", other: "weakref.ref[Any] | None") -> bool:
    thing = one() if one is not None else None
    return thing is not None and other is not None and thing is other()
