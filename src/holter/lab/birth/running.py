"""Running a step to its end, and telling what is not finite then."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.optim import LBFGS, Optimizer

from holter.lab.birth.owners import Owner, identity, owned
from holter.lab.birth.tracing import Trace
from holter.lab.birth.values import extent
from holter.watching.taps import Tap


@dataclass(slots=True)
class Course:
    """How a step went."""

    symptoms: list[tuple[Owner | None, Tensor]] = field(default_factory=list)  # not finite at last
    of_loss: bool = False  # it is the loss
    scale: float = 0.0  # of the GradScaler that the loss was scaled by; 0 if by none
    error: Exception | None = None  # by which it ended


def run(
    trace: Trace,
    step: Callable[[], Tensor],
    models: Mapping[str, nn.Module],
    optimizers: Sequence[Optimizer],
    update: Callable[[], object] | None,
) -> Course:
    """Run a step as far as everything is finite."""
    course = Course()
    spoiled = {identity(each) for _, each in owned(models, optimizers) if _is_wrong(each)}
    trained = [parameter for model in models.values() for parameter in model.parameters()]
    trained += [
        e for optimizer in optimizers for group in optimizer.param_groups for e in group["params"]
    ]
    for each in trained:
        each.grad = None
    try:
        with trace, scale_seen(course):
            loss = step()
        if _is_wrong(loss):
            course.symptoms, course.of_loss = [(None, loss)], True
            return course
        if loss.requires_grad:
            with trace:
                torch.autograd.backward(loss if loss.numel() == 1 else loss.mean())
        course.symptoms = _wrong((None, each.grad) for each in trained if each.grad is not None)
        if course.symptoms or (course.scale and update is None):
            return course
        with trace, one_by_one(optimizers):
            trace.updating = True
            _update(optimizers, update)
        now = list(owned(models, optimizers))
        course.symptoms = _wrong(each for each in now if identity(each[1]) not in spoiled)
        # Gradients that were finite batch by batch, but not their sum.
        course.symptoms += _wrong((o, t.grad) for o, t in now if t.grad is not None)
    except Exception as error:
        course.error = error
    return course


def _update(optimizers: Sequence[Optimizer], update: Callable[[], object] | None) -> None:
    if update is not None:
        update()
        return
    for optimizer in optimizers:
        if not isinstance(optimizer, LBFGS):  # which computes the loss again and again
            optimizer.step()


def _is_wrong(tensor: Tensor) -> bool:
    return extent(tensor.detach()) is not None


def _wrong(tensors: Iterable[tuple[Owner | None, Tensor]]) -> list[tuple[Owner | None, Tensor]]:
    return [tensor for tensor in tensors if _is_wrong(tensor[1])]


@contextmanager
def scale_seen(course: Course) -> Iterator[None]:
    """Notice by what a GradScaler multiplies a loss."""

    def around(original: Callable[..., Any]) -> Callable[..., Any]:
        def scale(self: GradScaler, outputs: Any) -> Any:
            course.scale = self.get_scale() if self.is_enabled() else 0.0
            return original(self, outputs)

        return scale

    tap = Tap(GradScaler, "scale", around)
    try:
        yield
    finally:
        tap.remove()


@contextmanager
def one_by_one(optimizers: Sequence[Optimizer]) -> Iterator[None]:
    """Let optimizers update parameter by parameter, operation by operation."""
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    keys = ("foreach", "fused")
    fast: list[dict[str, Any]] = [{k: group[k] for k in keys if k in group} for group in groups]
    for group, was in zip(groups, fast, strict=True):
        group.update(dict.fromkeys(was, False))
    try:
        yield
    finally:
        for group, was in zip(groups, fast, strict=True):
            group.update(was)
