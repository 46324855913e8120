"""What loss functions are given: prediction and target, and what their axes mean."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import _reduction

LIMIT = 1 << 22  # elements of a prediction that are looked at one by one
_CALLS = 64  # of one step that are kept: memory stays bounded
_EVERY = 3  # odd: batches that alternate by twos are not seen by half
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

T = TypeVar("T")
Hits = tuple[Tensor, Tensor | int]  # how many are right, of how many


class Family(Enum):
    """What the targets of a loss function are."""

    CLASSES = "one of several classes"
    BINARY = "yes or no, for each unit"
    NUMBERS = "numbers"


FAMILIES = {
    "cross_entropy": Family.CLASSES,
    "nll_loss": Family.CLASSES,
    "multi_margin_loss": Family.CLASSES,
    "binary_cross_entropy": Family.BINARY,
    "binary_cross_entropy_with_logits": Family.BINARY,
    "multilabel_soft_margin_loss": Family.BINARY,
    "soft_margin_loss": Family.BINARY,
    "gaussian_nll_loss": Family.NUMBERS,
    "huber_loss": Family.NUMBERS,
    "l1_loss": Family.NUMBERS,
    "mse_loss": Family.NUMBERS,
    "poisson_nll_loss": Family.NUMBERS,
    "smooth_l1_loss": Family.NUMBERS,
}


@dataclass(frozen=True, slots=True)
class Given:
    """A prediction and its target, neither empty, on one device and without a graph."""

    function: str
    family: Family
    prediction: Tensor
    target: Tensor
    arguments: Mapping[str, Any]

    @property
    def axis(self) -> int:
        """Of the prediction: where the classes lie, or the samples in the other families."""
        return 1 if self.family is Family.CLASSES and self.prediction.dim() > 1 else 0

    @property
    def is_soft(self) -> bool:
        """Whether each target is a distribution over the classes."""
        return self.family is Family.CLASSES and self.target.is_floating_point()

    @property
    def ignored(self) -> int | None:
        """The class that is no target."""
        ignored: int | None = None if self.is_soft else self.arguments.get("ignore_index")
        return ignored

    def thinned(self) -> "Given":
        """A regular subset of the samples and positions, if there are too many to read all."""
        prediction, target = self.prediction, self.target
        if self.family is not Family.CLASSES:
            return replace(self, prediction=_thin(prediction), target=_thin(target))
        while prediction.numel() > LIMIT:
            sizes = list(prediction.shape)
            sizes[self.axis] = 0
            longest = max(range(len(sizes)), key=sizes.__getitem__)
            if sizes[longest] < _EVERY:
                break
            prediction = _every(prediction, longest)
            # Class indices have no axis of classes.
            target = _every(target, longest - (not self.is_soft and longest > self.axis))
        return replace(self, prediction=prediction, target=target)

    def hits(self) -> Hits | None:
        """How many targets the prediction has right, of how many; None where that has no sense.

        NaN where only the values of the targets show that it has none.
        """
        prediction, target = self.prediction, self.target
        if self.family is Family.CLASSES:
            answer = prediction.argmax(self.axis)
            if self.is_soft:
                return (answer == target.argmax(self.axis)).sum(), answer.numel()
            if self.ignored is None:
                return (answer == target).sum(), target.numel()
            kept = target != self.ignored
            return ((answer == target) & kept).sum(), kept.sum()
        if self.family is Family.BINARY and prediction.shape == target.shape:
            predicted = prediction > (0.5 if self.function == "binary_cross_entropy" else 0)
            meant = target > (0 if self.function == "soft_margin_loss" else 0.5)
            return _of_classes(target, (predicted == meant).sum())
        return None


def _of_classes(target: Tensor, right: Tensor) -> Hits | None:
    """Return hits if targets have two values, smoothed or not: those between cannot be hit."""
    low, high = torch.aminmax(target)
    decided = (target == low) | (target == high)
    if target.is_cpu:
        return (right, target.numel()) if bool(decided.all()) else None
    # Elsewhere nobody waits for the answer: the share of hits is NaN.
    return torch.where(decided.all(), right.float(), math.nan), target.numel()


class Measurements(Generic[T]):
    """What was measured of each loss function, first of calls whose backward is still to come."""

    def __init__(self) -> None:
        self._fresh: list[tuple[str, torch.device, T]] = []
        self._settled: list[tuple[str, torch.device, T]] = []

    @property
    def has_room(self) -> bool:
        """Whether another call may be kept."""
        return len(self._fresh) < _CALLS

    def add(self, function: str, device: torch.device, measured: T) -> None:
        """Keep the measurement of a call."""
        if self.has_room:
            self._fresh.append((function, device, measured))

    def settle(self) -> None:
        """A backward or an update: what was called until now belongs to the open step."""
        self._settled = [*self._settled, *self._fresh][:_CALLS]
        self._fresh.clear()

    def take(self) -> Iterable[tuple[str, list[T]]]:
        """The calls of the step that ends, by function; all of one function on one device."""
        functions: dict[str, list[T]] = {}
        devices: dict[str, torch.device] = {}
        for function, device, measured in self._settled:
            if devices.setdefault(function, device) == device:
                functions.setdefault(function, []).append(measured)
        self._settled.clear()
        return functions.items()


class Owners(dict[str, tuple[str, ...]]):
    """The same tuple for each loss function each time: owners are compared by identity."""

    def __missing__(self, function: str) -> tuple[str, ...]:
        owner = self[function] = (function,)
        return owner


def given(function: str, arguments: Mapping[str, Any]) -> Given | None:
    """What a loss function was given, if that can be read."""
    family = FAMILIES.get(function)
    prediction, target = arguments.get("input"), arguments.get("target")
    if (
        family is None
        or not (isinstance(prediction, Tensor) and isinstance(target, Tensor))
        or not (readable(prediction) and readable(target))
        or prediction.dtype not in _FLOATS
        or target.is_complex()
        or prediction.device != target.device
    ):
        return None
    call = Given(function, family, prediction.detach(), target.detach(), arguments)
    if family is Family.CLASSES:
        wanted = list(prediction.shape)
        if not call.is_soft:
            wanted = wanted[: call.axis] + wanted[call.axis + 1 :]
        if not prediction.dim() or list(target.shape) != wanted:
            return None
    return call


def share(hits: Sequence[Hits]) -> Tensor:
    """Of all together, the share that is right."""
    right = torch.stack([hit for hit, _ in hits]).sum()
    return (right / sum(total for _, total in hits)).reshape(1)


def reduction(arguments: Mapping[str, Any]) -> str:
    """How a loss function was asked to reduce its elements: mean, sum, none."""
    average, reduce = arguments.get("size_average"), arguments.get("reduce")
    if average is not None or reduce is not None:
        return _reduction.legacy_get_string(average, reduce, emit_warning=False)
    return str(arguments.get("reduction"))


def wide(tensor: Tensor) -> torch.dtype:
    """The type to sum in."""
    return torch.float32 if tensor.device.type == "mps" else torch.float64


def readable(tensor: Tensor) -> bool:
    """Whether a tensor has values that can be read, and read without a sync."""
    return (
        type(tensor) in (Tensor, nn.Parameter)  # no DTensor, fake, functional and the like
        and tensor.layout is torch.strided
        and not tensor.is_nested
        and not tensor.is_meta
        and tensor.numel() > 0
        and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)  # noqa: SLF001
        and not torch._C._is_tracing()  # noqa: SLF001
        and not (tensor.is_cuda and torch.cuda.is_current_stream_capturing())
    )


def _thin(tensor: Tensor) -> Tensor:
    while tensor.numel() > LIMIT:
        tensor = _every(tensor, max(range(tensor.dim()), key=tensor.shape.__getitem__))
    return tensor


def _every(tensor: Tensor, axis: int) -> Tensor:
    return tensor[(slice(None),) * axis + (slice(None, None, _EVERY),)]
