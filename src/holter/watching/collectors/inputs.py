"""What models are called with in training: fingerprint, mean, spread, what is not finite."""

import math
import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import nn

from holter.record.signals import (
    INPUT_ABSMAX,
    INPUT_ELEMENTS,
    INPUT_FINGERPRINT,
    INPUT_MEAN,
    INPUT_NONFINITE,
    INPUT_OTHER_ABSMAX,
    INPUT_OTHER_MEAN,
    INPUT_OTHER_STD,
    INPUT_STD,
    Signal,
)
from holter.watching.collectors import Reading
from holter.watching.collectors.arguments import Arguments, Content, unread
from holter.watching.collectors.batches import Batches, Value
from holter.watching.collectors.calls import Calls, is_compiled
from holter.watching.collectors.moments import AfterUpdate, BackwardBegins, Closing, Depth, Joined
from holter.watching.collectors.naming import unwrapped
from holter.watching.collectors.roster import Roster

_OTHERS = 3  # further tensors of a call whose scale is read
_SILENT = 3  # windows without a single call after which the hook is removed for good


class _Key(NamedTuple):
    """Whose call it is: that of a model, or of one of its parts."""

    label: str
    is_whole: bool


class _Taken(NamedTuple):
    """What was read of one call; `settled` if it was no doubt one of training."""

    values: list[tuple[Signal, Value]]
    settled: bool
    others: list[tuple[Signal, str, Value]]  # of further arguments


class Inputs:
    """Reads the first call of each model with gradients enabled, before the step's first backward.

    A call in eval mode may be one of a validation that forgot `no_grad`: the next one replaces it.
    A model that is never called as a whole (`model.log_prob(x)`) is called part by part. The first
    part that is given data tells whether they are finite; its data may be positions or time steps,
    so that nothing else is read of them.
    """

    emits: ClassVar[tuple[Signal, ...]] = (
        INPUT_MEAN,
        INPUT_STD,
        INPUT_ABSMAX,
        INPUT_NONFINITE,
        INPUT_FINGERPRINT,
        INPUT_ELEMENTS,
        INPUT_OTHER_MEAN,
        INPUT_OTHER_STD,
        INPUT_OTHER_ABSMAX,
    )
    at: ClassVar[tuple[type, ...]] = (Joined, AfterUpdate, BackwardBegins, Closing)
    depth: ClassVar[Depth] = Depth.REGULAR
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self.declined: list[str] = []  # sentences about what is not recorded
        self._calls: Calls[_Key] = Calls(self._heard, self._returned)
        self._arguments: defaultdict[str, Arguments] = defaultdict(Arguments)  # by model
        self._unread = ""  # what a model was called with instead of something to read
        self._batches = Batches()
        self._roster: weakref.ref[Roster] | None = None
        self._owners: dict[str, tuple[str, ...]] = {}
        self._of_others: dict[str, tuple[str, ...]] = {}  # by argument
        self._taken: dict[str, _Taken] = {}
        self._depth = Depth.LIGHT  # of the step whose forward is heard
        self._whole: set[str] = set()  # models that were called as a whole
        self._by_part = False  # a window passed without a call of a whole model: parts are heard
        self._silent = 0  # windows in a row in which no model was called
        self._partial = 0  # windows in a row in which parts of models were called alone

    @property
    def spent(self) -> float:
        """Seconds inside the hooks, which no moment sees."""
        return self._calls.spent

    def read(self, moment: Joined | AfterUpdate | BackwardBegins | Closing) -> Iterable[Reading]:
        """A value for each model that was called, when the first backward of a step begins."""
        if isinstance(moment, BackwardBegins):
            self._calls.check()
            return self._readings() if moment.opens_step else ()
        self._depth = Depth.LIGHT
        if isinstance(moment, Joined):
            self._depth = moment.depth
        elif isinstance(moment, AfterUpdate):
            self._depth = moment.next_depth
        if isinstance(moment, Closing) or self._depth < self.depth or self._silent >= _SILENT:
            self._calls.stop()
            self._taken.clear()
        else:
            self._listen(moment.roster)
        return ()

    def _listen(self, roster: Roster) -> None:
        is_known = self._roster is not None and self._roster() is roster
        # What is compiled is checked again in full steps only, where much is read anyway.
        if not is_known or self._depth is Depth.FULL:
            compiled = [model.label for model in roster.models if is_compiled(model.module)]
            if compiled:
                self._decline(f"inputs are not recorded: {compiled[0]} is compiled")
                self._silent = _SILENT
                self._calls.stop()
                return
        if not is_known:
            self._roster = weakref.ref(roster)
            self._owners = {
                model.label: self._owners.get(model.label, (model.label,))
                for model in roster.models
            }
            self._know(roster)
        self._calls.listen()

    def _know(self, roster: Roster) -> None:
        parts = _parts(roster) if self._by_part else ()
        whole = [(module, _Key(label, is_whole=True)) for module, label in roots(roster)]
        self._calls.know((*parts, *whole))

    def _heard(self, key: _Key, module: nn.Module, arguments: Any) -> bool:
        """Whether there was something to read, or no wish to."""
        label = key.label
        if not torch.is_grad_enabled():
            return True
        before = self._taken.get(label)
        if before is not None and before.settled:
            return True
        if not key.is_whole:
            if label not in self._whole:
                self._take_part(label, module, arguments)
            return True
        self._whole.add(label)  # its parts are called inside it
        return not self._arguments[label].wants_output(arguments) and self._take(
            label, module, arguments
        )

    def _returned(
        self, key: _Key, module: nn.Module, arguments: tuple[Any, Any], output: Any
    ) -> None:
        """The call needed a second look: for arguments by name, or for what is carried along."""
        label = key.label
        given = self._arguments[label].of_call(arguments, output)
        if not self._take(label, module, given):
            self._unread = unread(arguments)

    def _take(self, label: str, module: nn.Module, arguments: Any) -> bool:
        """Read the data of a call; whether there was any."""
        data = self._arguments[label].data(arguments)
        if not data:
            return False
        first = data[0]
        fingerprint = first.fingerprint(self._batches)
        elements = float(first.numbers.numel())
        values: list[tuple[Signal, Value]] = [
            (INPUT_FINGERPRINT, fingerprint),
            (INPUT_ELEMENTS, elements),
        ]
        floats = [content for content in data if content.numbers.is_floating_point()]
        others: list[tuple[Signal, str, Value]] = []
        if floats:
            chosen = floats[0]
            fine = (
                chosen is first
                and isinstance(fingerprint, float)
                and math.isfinite(fingerprint)
                and self._batches.is_whole(chosen.numbers)
            )
            if not chosen.is_produced:
                nonfinite = 0.0 if fine else self._batches.nonfinite(chosen.numbers)
                values.append((INPUT_NONFINITE, nonfinite))
            if self._depth is Depth.FULL:
                std, mean = chosen.spread()
                values += [(INPUT_MEAN, mean), (INPUT_STD, std)]
                values.append((INPUT_ABSMAX, self._batches.absmax(chosen.numbers)))
                others += self._scales(label, floats[1:])
        self._keep(label, module, values, others)
        return True

    def _scales(
        self, label: str, contents: Sequence[Content]
    ) -> Iterator[tuple[Signal, str, Value]]:
        """Yield the scale of further arguments, such as the features beside an adjacency."""
        wanted = [each for each in contents if each.is_of_samples and not each.is_produced]
        for content in wanted[:_OTHERS]:
            owner = f"{label}, argument {content.argument}"
            std, mean = content.spread()
            yield INPUT_OTHER_MEAN, owner, mean
            yield INPUT_OTHER_STD, owner, std
            yield INPUT_OTHER_ABSMAX, owner, self._batches.absmax(content.numbers)

    def _take_part(self, label: str, module: nn.Module, arguments: Any) -> None:
        """Read whether the data that a part of a model is given are finite."""
        for content in self._arguments[label].data(arguments):
            if content.numbers.is_floating_point() and not content.is_produced:
                nonfinite = self._batches.nonfinite(content.numbers)
                self._keep(label, module, [(INPUT_NONFINITE, nonfinite)], [])
                return

    def _keep(
        self,
        label: str,
        module: nn.Module,
        values: list[tuple[Signal, Value]],
        others: list[tuple[Signal, str, Value]],
    ) -> None:
        self._taken[label] = _Taken(values, settled=module.training, others=others)
        if all(owner in self._taken and self._taken[owner].settled for owner in self._owners):
            self._calls.stop()

    def _readings(self) -> list[Reading]:
        if self._depth < self.depth or self._silent >= _SILENT:
            return []
        self._depth = Depth.LIGHT
        self._calls.stop()
        taken, self._taken = self._taken, {}
        self._silent = 0 if taken else self._silent + 1
        is_whole = any(INPUT_FINGERPRINT in dict(batch.values) for batch in taken.values())
        self._partial = self._partial + 1 if taken and not is_whole else 0
        if self._silent == 1 and not self._unread and not self._by_part:
            self._by_part, self._roster = True, None  # which parts there are is looked up again
        if self._partial == _SILENT:
            self._decline(
                "inputs are not recorded, but whether they are finite: no call of a whole model"
                " was seen; its parts are called one by one"
            )
        if self._silent == _SILENT:
            self._decline(
                f"inputs are not recorded: the model is called with {self._unread}"
                if self._unread
                else "inputs are not recorded: no call of a whole model was seen; the step may be"
                " compiled, or its parts are called one by one"
            )
        batches = [(label, batch) for label, batch in taken.items() if label in self._owners]
        return [
            *(
                Reading(signal, self._owners[label], as_values(value))
                for label, batch in batches
                for signal, value in batch.values
            ),
            *(
                Reading(signal, self._of_others.setdefault(owner, (owner,)), as_values(value))
                for _, batch in batches
                for signal, owner, value in batch.others
            ),
        ]

    def _decline(self, sentence: str) -> None:
        if sentence not in self.declined:
            self.declined.append(sentence)


def roots(roster: Roster) -> list[tuple[nn.Module, str]]:
    """Each model, and what it wraps, with the label of the model."""
    return [
        (module, model.label)
        for model in roster.models
        for module in (model.module, *_cores(unwrapped(model.module)))
    ]


def _parts(roster: Roster) -> Iterator[tuple[nn.Module, _Key]]:
    """All modules of each model."""
    for model in roster.models:
        for part in model.module.modules():
            yield part, _Key(model.label, is_whole=False)


def _cores(module: nn.Module) -> Iterator[nn.Module]:
    """A module, and while it only holds one other, that: a training step may call the inner one."""
    yield module
    children = list(module.children())
    while len(children) == 1 and not list(module.parameters(recurse=False)):
        (module,) = children
        yield module
        children = list(module.children())


def as_values(value: Value) -> torch.Tensor | list[float]:
    """One value as the values of a reading."""
    return value.reshape(1) if isinstance(value, torch.Tensor) else [value]
