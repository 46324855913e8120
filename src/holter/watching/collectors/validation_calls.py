"""What models are called with in a validation pass, and how many of their modules still train."""

import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from holter.record.signals import (
    VAL_INPUT_FINGERPRINT,
    VAL_INPUT_MEAN,
    VAL_INPUT_STD,
    VAL_MODE_TRAINING,
    VAL_TRAIN_FRACTION,
    Signal,
)
from holter.watching.collectors import Reading
from holter.watching.collectors.arguments import Arguments
from holter.watching.collectors.batches import Batches, Value
from holter.watching.collectors.calls import Calls, is_compiled
from holter.watching.collectors.duplicates import copies_of, counterparts
from holter.watching.collectors.inputs import as_values, roots
from holter.watching.collectors.moments import (
    Closing,
    Depth,
    EvaluationBegins,
    StepEnds,
    ValidationLoss,
)
from holter.watching.collectors.naming import mode_dependent
from holter.watching.collectors.roster import Model, Roster

_ENOUGH = 4  # batches of a pass that are read
_SEARCHED = 2  # passes before which copies of the models, such as moving averages, are looked for
_ORDER = {"test": 1, "train": 2}  # of splits, the later the less wanted


class _Spread(NamedTuple):
    """Of one batch."""

    std: Tensor
    mean: Tensor
    size: int


class _Pass:
    """What was read of one model on some data since the last step ended."""

    def __init__(self) -> None:
        self.calls = 0
        self.fingerprint: Value | None = None
        self.spreads: list[_Spread] = []
        self.mode: list[bool] = []  # whether it was in training mode itself, of each call
        self.training: list[float] = []  # and the share of its modules that were

    def join(self, later: "_Pass") -> None:
        """Add what was read of later calls."""
        self.calls += later.calls
        self.fingerprint = self.fingerprint if self.fingerprint is not None else later.fingerprint
        self.spreads += later.spreads
        self.mode += later.mode
        self.training += later.training


class ValidationCalls:
    """Reads the first calls without gradients after a model was put into eval mode.

    A script that never does so is heard from its first validation loss on. What was read belongs to
    the data of the next loss. Of several data that are evaluated in one go, held-out ones count.
    Where a copy of a model is evaluated in its place, the copy is read.
    """

    emits: ClassVar[tuple[Signal, ...]] = (
        VAL_INPUT_MEAN,
        VAL_INPUT_STD,
        VAL_INPUT_FINGERPRINT,
        VAL_TRAIN_FRACTION,
        VAL_MODE_TRAINING,
    )
    at: ClassVar[tuple[type, ...]] = (EvaluationBegins, ValidationLoss, StepEnds, Closing)
    depth: ClassVar[Depth] = Depth.LIGHT
    wakes_at: ClassVar[tuple[type, ...]] = (EvaluationBegins, ValidationLoss)

    def __init__(self) -> None:
        self.declined: list[str] = []  # the collector of inputs says it all
        self._calls: Calls[str] = Calls(self._heard, self._returned)
        self._arguments: defaultdict[str, Arguments] = defaultdict(Arguments)  # by model
        self._batches = Batches()
        self._roster: weakref.ref[Roster] | None = None
        self._fresh: dict[str, _Pass] = {}  # by model: calls whose loss is still to come
        self._passes: dict[str, dict[str, _Pass]] = {}  # by data and model
        self._splits: dict[str, str] = {}  # of the data
        self._owners: dict[str, tuple[str, ...]] = {}
        self._copies: dict[str, tuple[weakref.ref[nn.Module], weakref.ref[nn.Module]]] = {}
        self._searched = 0  # passes
        self._has_begun = False

    @property
    def spent(self) -> float:
        """Seconds inside the hooks, which no moment sees."""
        return self._calls.spent

    def read(
        self, moment: EvaluationBegins | ValidationLoss | StepEnds | Closing
    ) -> Iterable[Reading]:
        """Values of the pass, at the end of the step."""
        self._calls.check()
        if isinstance(moment, Closing):
            self._calls.stop()
        elif isinstance(moment, StepEnds):
            return self._end() if self._has_begun else ()
        elif not self._has_begun:
            self._listen(moment.roster)
        if isinstance(moment, ValidationLoss) and (self._fresh or moment.data not in self._splits):
            self._assign(moment)
        return ()

    def _assign(self, moment: ValidationLoss) -> None:
        """Assign what was read to the data of a loss; read the first calls on each data set."""
        if moment.data not in self._splits:
            if self._splits:
                self._calls.listen()
            self._splits[moment.data] = moment.split
            if not self._fresh and len(moment.roster.models) == 1:  # it was called for this loss
                self._look(moment.roster.models[0])
        passes = self._passes.setdefault(moment.data, {})
        for label, fresh in self._fresh.items():
            passes.setdefault(label, _Pass()).join(fresh)
            if passes[label].calls >= _ENOUGH:
                self._calls.stop()
        self._fresh.clear()

    def _listen(self, roster: Roster) -> None:
        self._has_begun = True
        if not any(is_compiled(model.module) for model in roster.models):
            self._roster = weakref.ref(roster)
            if self._searched < _SEARCHED:
                self._searched += 1
                self._find_copies(roster)
            copies = [(copy, label) for label, (ref, _) in self._copies.items() if (copy := ref())]
            self._calls.know([*roots(roster), *copies])
            self._calls.listen()

    def _find_copies(self, roster: Roster) -> None:
        known = {id(model.module) for model in roster.models}
        for model in roster.models:
            for copy in copies_of(model.module) if model.mode_dependent else ():
                if id(copy) not in known:
                    label = f"a copy of {model.label}"
                    self._copies[label] = weakref.ref(copy), weakref.ref(model.module)

    def _heard(self, label: str, module: nn.Module, arguments: Any) -> bool:  # noqa: ARG002
        """Whether there was a tensor to read, or no wish to."""
        if torch.is_grad_enabled():
            return True
        return not self._arguments[label].wants_output(arguments) and self._take(label, arguments)

    def _returned(self, label: str, _: nn.Module, arguments: tuple[Any, Any], output: Any) -> None:
        self._take(label, self._arguments[label].of_call(arguments, output))

    def _take(self, label: str, arguments: Any) -> bool:
        """Read the data of a call; whether there was any."""
        data = self._arguments[label].data(arguments)
        if not data:
            return False
        roster = self._roster() if self._roster is not None else None
        models = roster.models if roster is not None else ()
        model = next((model for model in models if model.label == label), None)
        model = model or self._copy(label)
        if model is None:
            return True
        current = self._look(model)
        if not current.calls:
            current.fingerprint = data[0].fingerprint(self._batches)
        floats = [content for content in data if content.numbers.is_floating_point()]
        if floats:
            current.spreads.append(_Spread(*floats[0].spread(), floats[0].numbers.numel()))
        current.calls += 1
        if current.calls >= _ENOUGH:
            self._calls.stop()  # however many calls a loss takes
        return True

    def _copy(self, label: str) -> Model | None:
        copy, original = (ref() for ref in self._copies.get(label, (lambda: None, lambda: None)))
        if copy is None or original is None:
            return None
        return Model(label, "", copy, counterparts(original, copy, mode_dependent(original)))

    def _look(self, model: Model) -> _Pass:
        """See which modules of a model are in training mode."""
        current = self._fresh.setdefault(model.label, _Pass())
        if model.mode_dependent:
            current.mode.append(model.module.training)
            training = sum(module.training for module in model.mode_dependent)
            current.training.append(training / len(model.mode_dependent))
        return current

    def _end(self) -> list[Reading]:
        self._calls.stop()
        passes, self._passes, splits, self._splits = self._passes, {}, self._splits, {}
        self._fresh.clear()
        self._has_begun = False
        if not passes:
            return []
        held_out = passes[min(passes, key=lambda data: _ORDER.get(splits[data], 0))]
        copies = {label: read for label, read in held_out.items() if label in self._copies}
        if len(copies) == len(held_out):  # they are what is evaluated, and no teachers
            return [
                self._reading(signal, label, value)
                for label, passed in copies.items()
                for signal, value in _values(passed)
                if signal not in (VAL_INPUT_STD, VAL_INPUT_MEAN)  # compared with the training's
            ]
        return [
            self._reading(signal, label, value)
            for label, passed in held_out.items()
            for signal, value in _values(passed)
            if label not in copies
        ]

    def _reading(self, signal: Signal, label: str, value: Value) -> Reading:
        return Reading(signal, self._owners.setdefault(label, (label,)), as_values(value))


def _values(passed: _Pass) -> Iterator[tuple[Signal, Value]]:
    if passed.training:
        yield VAL_TRAIN_FRACTION, sum(passed.training) / len(passed.training)
        yield VAL_MODE_TRAINING, sum(passed.mode) / len(passed.mode)
    if passed.fingerprint is not None:
        yield VAL_INPUT_FINGERPRINT, passed.fingerprint
    if passed.spreads:
        std, mean = _pooled(passed.spreads)
        yield VAL_INPUT_STD, std
        yield VAL_INPUT_MEAN, mean


def _pooled(spreads: Sequence[_Spread]) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean of all batches together."""
    total = sum(spread.size for spread in spreads)
    mean = sum(spread.mean.double() * (spread.size / total) for spread in spreads)
    square = sum(
        (spread.std.double().square() + (spread.mean.double() - mean).square())
        * (spread.size / total)
        for spread in spreads
    )
    return torch.as_tensor(square).sqrt(), torch.as_tensor(mean)
