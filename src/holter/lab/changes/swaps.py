"""Swaps: a part of the training replaced by one that is known to work, or several repaired."""

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from holter.lab.batches import leaves
from holter.lab.calls import arguments_replaced
from holter.lab.changes import Altered, TappedChange
from holter.lab.changes._hooks import Arguments, around_models, around_steps
from holter.lab.changes.clipping import CLIPPING_OFF
from holter.lab.changes.gradients import ACCUMULATION_DIVIDED, GRADIENTS_CLEARED
from holter.lab.changes.learning_rate import SCHEDULE_CONSTANT
from holter.lab.changes.modes import TRAIN_MODE
from holter.lab.changes.precision import AUTOCAST_OFF
from holter.record.trials import TrialKind, TrialName
from holter.watching.blackbox.shadow import held_by

RATE = 1e-3  # of the reference optimizer: Adam
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


class Adam:
    """Adam with default settings; no torch optimizer, which a watch would take for the script's."""

    def __init__(self) -> None:
        self._state: dict[Tensor, tuple[Tensor, Tensor]] = {}
        self._steps = 0

    @torch.no_grad()
    def step(self, gradients: Iterable[tuple[Tensor, Tensor | None]]) -> None:
        """Update parameters by their gradients."""
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
            parameter.addcdiv_(mean, spread, value=-RATE / (1 - 0.9**self._steps))


@contextmanager
def _with_adam(altered: Altered) -> Iterator[None]:
    """Let Adam make the steps: the script's optimizer sees no gradients while it steps itself."""
    references: WeakKeyDictionary[Optimizer, Adam] = WeakKeyDictionary()
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
        references.setdefault(optimizer, Adam()).step(kept)

    with around_steps(before=before, after=after):
        yield


REFERENCE_OPTIMIZER = TappedChange(
    TrialName(TrialKind.REFERENCE_OPTIMIZER),
    f"Train with Adam at a learning rate of {RATE:g} in place of the script's optimizer.",
    _with_adam,
)


def _is_batch(value: Any, samples: int) -> bool:
    return isinstance(value, Tensor) and value.dim() > 0 and len(value) == samples


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

    with _inputs_kept(last), arguments_replaced(learnable):
        yield


def _inputs_kept(last: list[Tensor]) -> AbstractContextManager[None]:
    """Keep what the last model was given, one row a sample, in a list."""

    def given(_: nn.Module, arguments: Arguments) -> Arguments:
        found = [t for t in leaves(arguments).values() if t.dim() > 1]
        last[:] = [found[0].detach().flatten(1).double().cpu()] if found else []
        return arguments

    return around_models(given=given)


LEARNABLE_LABELS = TappedChange(
    TrialName(TrialKind.LEARNABLE_LABELS),
    "Replace the targets by a linear function of the inputs, which can be learned.",
    _learnable,
)


@contextmanager
def _shuffled_labels(altered: Altered) -> Iterator[None]:
    """Give each sample a target of the first batch at random, the same one whenever it comes."""
    last: list[Tensor] = []
    pools: dict[tuple[int, ...], Tensor] = {}  # by the shape of a target

    def shuffled(_: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        target = arguments.get("target")
        if not last or not _is_batch(target, len(last[0])):
            return {}
        assert isinstance(target, Tensor)
        pool = pools.setdefault(tuple(target.shape[1:]), target.detach().clone())
        if bool((pool == pool[:1]).all()):  # targets that do not vary are no labels
            return {}
        altered()
        drawn = [zlib.crc32(sample.numpy().tobytes()) % len(pool) for sample in last[0]]
        return {"target": pool[torch.tensor(drawn, device=pool.device)].to(target)}

    with _inputs_kept(last), arguments_replaced(shuffled):
        yield


LABELS_SHUFFLED = TappedChange(
    TrialName(TrialKind.LABELS_SHUFFLED),
    "Give each sample the target of another one, always the same.",
    _shuffled_labels,
)
