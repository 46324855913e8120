"""A reference model: a small network that is known to learn, in the place of the script's own."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from holter.lab.batches import leaves
from holter.lab.changes import Altered, TappedChange
from holter.lab.changes._hooks import Arguments, around_models, around_steps, is_training
from holter.lab.changes.swaps import RATE, Adam
from holter.record.trials import TrialKind, TrialName

_WIDTH = 64
_ROOM = 4  # times the largest number of the first batch that a table of embeddings has rows for
_MOST_NUMBERS = 20_000  # rows of such a table; larger whole numbers are quantities


class _Encoder(nn.Module):
    """Map one input to `_WIDTH` numbers: a row of a table for each whole number, else a network.

    A sequence gives a vector for each of its steps if `per_step` is set.
    """

    def __init__(self, given: Tensor, *, per_step: bool) -> None:
        super().__init__()
        self._per_step, self._rows = per_step, 0
        if not given.is_floating_point() and given.numel() and 0 <= given.min() <= given.max():
            self._rows = min(_ROOM * (int(given.max()) + 2), _MOST_NUMBERS)
        columns = 1 if per_step else math.prod(given.shape[1:])
        if self._rows:
            self._columns = 0 if per_step or columns > _WIDTH else columns
            self.body: nn.Module = nn.Embedding(self._rows * (self._columns + 1), _WIDTH)
        elif given.dim() == 4:
            self.body = nn.Sequential(
                *(nn.Conv2d(given.shape[1], 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU()),
                *(nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU()),
                *(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, _WIDTH)),
            )
        else:
            self.body = nn.Linear(given.shape[-1] if per_step else columns, _WIDTH)

    def forward(self, given: Tensor) -> Tensor:
        """Return a vector for each sample, or for each step of each sample."""
        if self._rows:
            numbers = given.long().clamp(0, self._rows - 1)
            if self._per_step:
                return self.body(numbers)  # type: ignore[no-any-return]
            numbers = numbers.reshape(len(given), -1)
            vectors = self.body(numbers)
            if numbers.shape[1] == self._columns:  # a number may mean another thing in each column
                columns = torch.arange(1, self._columns + 1, device=numbers.device)
                vectors = vectors + self.body(numbers + self._rows * columns)
            return vectors.mean(1)  # type: ignore[no-any-return]
        given = given.float()
        if given.dim() == 4 or self._per_step:
            return self.body(given)  # type: ignore[no-any-return]
        return self.body(given.reshape(len(given), -1))  # type: ignore[no-any-return]


class Reference(nn.Module):
    """A small network that maps inputs of some shapes to outputs of another.

    Images get a convolutional network, sequences with an output for each step a transformer layer
    that does not look ahead, and everything else a perceptron. Several inputs are encoded apart.
    """

    def __init__(self, given: Sequence[Tensor], made: Tensor) -> None:
        super().__init__()
        self._shape = made.shape[1:]
        self._per_step = [_is_per_step(each, made) for each in given]
        self.encoders = nn.ModuleList(
            _Encoder(each, per_step=flag) for each, flag in zip(given, self._per_step, strict=True)
        )
        if any(self._per_step):
            self.places = nn.Parameter(0.02 * torch.randn(made.shape[1], _WIDTH))
            self.body: nn.Module = nn.TransformerEncoderLayer(
                _WIDTH, 4, 2 * _WIDTH, 0.0, batch_first=True
            )
            self.head = nn.Linear(_WIDTH, made.shape[-1])
        else:
            self.body = nn.Sequential(nn.ReLU(), nn.Linear(_WIDTH, _WIDTH), nn.ReLU())
            self.head = nn.Linear(_WIDTH, math.prod(self._shape))

    def forward(self, given: Sequence[Tensor]) -> Tensor:
        """Return outputs in the shape of those that it was made for."""
        encoded = [encode(each) for encode, each in zip(self.encoders, given, strict=True)]
        if not any(self._per_step):
            made: Tensor = self.head(self.body(torch.stack(encoded).sum(0)))
            return made.reshape(len(given[0]), *self._shape)
        steps = max(each.shape[1] for each in encoded if each.dim() == 3)
        hidden = sum(each if each.dim() == 3 else each[:, None] for each in encoded)
        if steps > len(self.places):  # a longer sequence than the first: its end has no places
            places = torch.cat([self.places, self.places[-1:].expand(steps - len(self.places), -1)])
        else:
            places = self.places[:steps]
        ahead = torch.ones(steps, steps, dtype=torch.bool, device=places.device).triu(1)
        answered: Tensor = self.head(self.body(hidden + places, src_mask=ahead))
        return answered


def _is_per_step(given: Tensor, made: Tensor) -> bool:
    """Whether an input is a sequence, and the output has a vector for each of its steps."""
    if made.dim() != 3 or given.dim() not in (2, 3) or given.shape[1] != made.shape[1]:
        return False
    return given.dim() == 3 or not given.is_floating_point()


class _Stand:
    """The reference that answers for one model, and the inputs it reads."""

    def __init__(self, given: dict[str, Tensor], made: Tensor) -> None:
        self._paths = tuple(given)
        with torch.random.fork_rng(devices=[]):  # the training draws what it would have drawn
            self.model = Reference(list(given.values()), made).to(made.device)

    def __call__(self, arguments: Arguments) -> Tensor | None:
        found = leaves(arguments)
        if any(path not in found for path in self._paths):
            return None
        answered: Tensor = self.model.train(is_training())([found[path] for path in self._paths])
        return answered


@contextmanager
def _reference_model(altered: Altered) -> Iterator[None]:
    """Let a reference model answer in place of the one that is called in training first."""
    stands: dict[nn.Module, _Stand] = {}
    refused: set[nn.Module] = set()
    adam = Adam()

    def call(model: nn.Module, original: Callable[..., Any], arguments: Arguments) -> Any:
        args, kwargs = arguments
        if model in refused or (model not in stands and (stands or not is_training())):
            return original(model, *args, **kwargs)
        made = original(model, *args, **kwargs)
        if model not in stands:
            first, given = _answer(made), leaves(arguments)
            inputs = {} if first is None else _inputs(given, first)
            if first is None or not inputs:
                refused.add(model)
                return made
            stands[model] = _Stand(inputs, first)
        answered = stands[model](arguments)
        if answered is None:
            return made
        altered()
        return answered if isinstance(made, Tensor) else (answered, *made[1:])

    def step(_: Optimizer) -> None:
        for stand in stands.values():
            parameters = list(stand.model.parameters())
            adam.step([(parameter, parameter.grad) for parameter in parameters])
            for parameter in parameters:
                parameter.grad = None

    with around_models(call=call), around_steps(after=step):
        yield


def _answer(made: Any) -> Tensor | None:
    """Return the output that is learned: the only one with a number for each sample, or None.

    Further outputs may be states, whose first dimension is another; a loss is none of them.
    """
    if isinstance(made, Tensor):
        return made if made.dim() and made.is_floating_point() else None
    if not isinstance(made, tuple) or not made or not isinstance(made[0], Tensor):
        return None
    first, others = made[0], leaves(made[1:]).values()
    if not first.dim() or not first.is_floating_point():
        return None
    return None if any(not o.dim() or len(o) == len(first) for o in others) else first


def _inputs(given: dict[str, Tensor], made: Tensor) -> dict[str, Tensor]:
    """Return the inputs with a row for each sample; none if one has the shape of the output.

    A model that returns its input, as an autoencoder does, has a bottleneck on purpose.
    """
    if any(each.is_floating_point() and each.shape == made.shape for each in given.values()):
        return {}
    return {
        path: each
        for path, each in given.items()
        if each.dim() and len(each) == len(made) and not each.requires_grad
    }


REFERENCE_MODEL = TappedChange(
    TrialName(TrialKind.REFERENCE_MODEL),
    f"Train a small reference model with Adam at a learning rate of {RATE:g} on the same data.",
    _reference_model,
)
