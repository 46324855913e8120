"""Swaps: a part of the training replaced by one that is known to work, or several repaired."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from holter.lab.batches import leaves
from holter.lab.calls import arguments_replaced
from holter.lab.changes import Altered, TappedChange
from holter.lab.changes._hooks import Arguments, around_models, around_steps, is_training
from holter.lab.changes.clipping import CLIPPING_OFF
from holter.lab.changes.gradients import ACCUMULATION_DIVIDED, GRADIENTS_CLEARED
from holter.lab.changes.learning_rate import SCHEDULE_CONSTANT
from holter.lab.changes.modes import TRAIN_MODE
from holter.lab.changes.precision import AUTOCAST_OFF
from holter.record.trials import TrialKind, TrialName
from holter.watching.blackbox.shadow import held_by

_RATE = 1e-3  # of the reference optimizer: Adam
_WIDTH = 64  # of the reference model
_CLASSES = ("cross_entropy", "nll_loss")


def together(id: TrialName, *changes: TappedChange) -> TappedChange:  # noqa: A002
    """Make several changes at once."""

    @contextmanager
    def entered(altered: Altered) -> Iterator[None]:
        with ExitStack() as stack:
            for change in changes:
                stack.enter_context(change.entered(altered))
            yield

    return TappedChange(id, " ".join(change.description for change in changes), entered)


PLAIN_LOOP = together(
    TrialName(TrialKind.PLAIN_LOOP),
    *(GRADIENTS_CLEARED, ACCUMULATION_DIVIDED, SCHEDULE_CONSTANT),
    *(CLIPPING_OFF, TRAIN_MODE, AUTOCAST_OFF),
)


class _Adam:
    """Adam with default settings; no torch optimizer, which a watch would take for the script's."""

    def __init__(self) -> None:
        self._state: dict[Tensor, tuple[Tensor, Tensor]] = {}
        self._steps = 0

    @torch.no_grad()
    def step(self, gradients: Iterable[tuple[Tensor, Tensor | None]]) -> None:
        self._steps += 1
        for parameter, gradient in gradients:
            if gradient is None:
                continue
            if parameter not in self._state:
                self._state[parameter] = torch.zeros_like(gradient), torch.zeros_like(gradient)
            mean, square = self._state[parameter]
            mean.lerp_(gradient, 0.1)
            square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            spread = (square / (1 - 0.999**self._steps)).sqrt_().add_(1e-8)
            parameter.addcdiv_(mean, spread, value=-_RATE / (1 - 0.9**self._steps))


@contextmanager
def _with_adam(altered: Altered) -> Iterator[None]:
    """Let Adam make the steps: the script's optimizer sees no gradients while it steps itself."""
    references: WeakKeyDictionary[Optimizer, _Adam] = WeakKeyDictionary()
    gradients: dict[Optimizer, list[tuple[Tensor, Tensor | None]]] = {}

    def before(optimizer: Optimizer) -> None:
        altered()
        gradients[optimizer] = [(p, p.grad) for p in held_by(optimizer)]
        for parameter, _ in gradients[optimizer]:
            parameter.grad = None

    def after(optimizer: Optimizer) -> None:
        kept = gradients.pop(optimizer, [])
        for parameter, gradient in kept:
            parameter.grad = gradient
        references.setdefault(optimizer, _Adam()).step(kept)

    with around_steps(before=before, after=after):
        yield


REFERENCE_OPTIMIZER = TappedChange(
    TrialName(TrialKind.REFERENCE_OPTIMIZER),
    f"Train with Adam at a learning rate of {_RATE:g} in place of the script's optimizer.",
    _with_adam,
)


class Reference(nn.Module):
    """A small network that maps inputs of some shape to outputs of another.

    Images get a convolutional network, sequences of tokens or vectors a transformer layer, and
    everything else a perceptron.
    """

    def __init__(self, given: Tensor, made: Tensor) -> None:
        super().__init__()
        self.shape = made.shape[1:]
        tokens = not given.is_floating_point() and given.dim() == 2
        per_step = given.dim() in (2, 3) and made.dim() == 3 and given.shape[1] == made.shape[1]
        self.per_step = per_step and (tokens or given.dim() == 3)
        out = made.shape[-1] if self.per_step else math.prod(self.shape)
        if tokens or self.per_step:
            size = int(given.max()) + 1 if tokens else given.shape[-1]
            first: nn.Module = (
                nn.Embedding(max(size, 2) * 4, _WIDTH) if tokens else nn.Linear(size, _WIDTH)
            )
            layer = nn.TransformerEncoderLayer(_WIDTH, 4, 2 * _WIDTH, 0.0, batch_first=True)
            self.body = nn.Sequential(first, layer)
        elif given.dim() == 4:
            channels = given.shape[1]
            self.body = nn.Sequential(
                *(nn.Conv2d(channels, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU()),
                *(nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU()),
                *(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, _WIDTH), nn.ReLU()),
            )
        else:
            size = math.prod(given.shape[1:])
            self.body = nn.Sequential(
                *(nn.Flatten(), nn.Linear(size, _WIDTH), nn.ReLU()),
                *(nn.Linear(_WIDTH, _WIDTH), nn.ReLU()),
            )
        self.head = nn.Linear(_WIDTH, out)

    def forward(self, given: Tensor) -> Tensor:
        """Return outputs in the shape of those that it was made for."""
        given = given if not given.is_floating_point() else given.float()
        hidden = self.body(given)
        if hidden.dim() == 3 and not self.per_step:
            hidden = hidden.mean(1)
        made: Tensor = self.head(hidden)
        return made if self.per_step else made.reshape(len(given), *self.shape)


@contextmanager
def _reference_model(altered: Altered) -> Iterator[None]:
    """Let a reference model answer in place of the one that is called in training first."""
    references: dict[nn.Module, Reference] = {}
    adam = _Adam()

    def call(model: nn.Module, original: Callable[..., Any], arguments: Arguments) -> Any:
        args, kwargs = arguments
        found = list(leaves(arguments).values())
        if not references and is_training():
            made = original(model, *args, **kwargs)
            if not (len(found) == 1 and found[0].dim() > 1 and _is_batch(made, len(found[0]))):
                return made
            references[model] = Reference(found[0], made).to(made.device)
        if model not in references or len(found) != 1:
            return original(model, *args, **kwargs)
        altered()
        return references[model].train(is_training())(found[0])

    def step(_: Optimizer) -> None:
        for reference in references.values():
            parameters = list(reference.parameters())
            adam.step([(parameter, parameter.grad) for parameter in parameters])
            for parameter in parameters:
                parameter.grad = None

    with around_models(call=call), around_steps(after=step):
        yield


def _is_batch(value: Any, samples: int) -> bool:
    return isinstance(value, Tensor) and value.dim() > 0 and len(value) == samples


REFERENCE_MODEL = TappedChange(
    TrialName(TrialKind.REFERENCE_MODEL),
    f"Train a small reference model with Adam at a learning rate of {_RATE:g} on the same data.",
    _reference_model,
)


class _Teacher:
    """Fixed linear functions of inputs, standardised by the first batch."""

    def __init__(self) -> None:
        self._scales: dict[int, tuple[Tensor, Tensor]] = {}
        self._weights: dict[tuple[int, int], Tensor] = {}

    def __call__(self, inputs: Tensor, columns: int) -> Tensor:
        width = inputs.shape[1]
        if width not in self._scales:
            spread = inputs.std(0, correction=0)
            self._scales[width] = inputs.mean(0), torch.where(spread > 0, spread, 1.0)
        if (width, columns) not in self._weights:
            generator = torch.Generator().manual_seed(0)
            drawn = torch.randn(width, columns, generator=generator, dtype=torch.float64)
            self._weights[width, columns] = drawn / math.sqrt(width)
        mean, spread = self._scales[width]
        return ((inputs - mean) / spread) @ self._weights[width, columns]


@contextmanager
def _learnable(altered: Altered) -> Iterator[None]:
    """Replace the targets by a fixed function of the inputs that a small model can learn."""
    teacher = _Teacher()
    last: list[Tensor] = []
    scales: list[tuple[Tensor, Tensor]] = []

    def given(_: nn.Module, arguments: Arguments) -> Arguments:
        found = [t for t in leaves(arguments).values() if t.dim() > 1]
        last[:] = [found[0].detach().flatten(1).double().cpu()] if found else []
        return arguments

    def learnable(function: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        made, target = arguments.get("input"), arguments.get("target")
        if not last or not isinstance(made, Tensor) or not _is_batch(target, len(last[0])):
            return {}
        assert isinstance(target, Tensor)
        if not target.is_floating_point():
            if function not in _CLASSES or target.dim() != 1 or made.dim() != 2:
                return {}
            altered()
            return {"target": teacher(last[0], made.shape[1]).argmax(1).to(target)}
        altered()
        values = teacher(last[0], math.prod(target.shape[1:])).reshape(target.shape).to(target)
        if bool(((target == 0) | (target == 1)).all()):
            return {"target": (values > 0).to(target)}
        if not scales:
            scales.append((target.mean(), target.std(correction=0)))
        mean, spread = scales[0]
        return {"target": values * spread + mean}

    with around_models(given=given), arguments_replaced(learnable):
        yield


LEARNABLE_LABELS = TappedChange(
    TrialName(TrialKind.LEARNABLE_LABELS),
    "Replace the targets by a linear function of the inputs, which can be learned.",
    _learnable,
)
