"""Hears what a script does at torch's entry points: backwards, clipping, steps, batches."""

import sys
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.nn.utils import clip_grad
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.data import DataLoader, dataloader

from holter.watching.taps import Tap

Call = Callable[..., Any]


class ScriptListener(Protocol):
    """Whoever wants to know. Its methods must not raise: they run inside somebody's training."""

    def backward_begins(
        self, roots: Sequence[Tensor], weights: Sequence[Tensor | None], frame: FrameType
    ) -> None:
        """`backward()` was called on `roots`, each with a weight; `frame` is the innermost one."""

    def backward_ended(self) -> None:
        """It has returned."""

    def process_begins(self) -> None:
        """The script starts another process."""

    def clipped(self, norm: float) -> None:
        """Gradients were clipped to a norm."""

    def clipped_by_value(self) -> None:
        """Gradients were clipped one by one."""

    def scaled(self, scaler: GradScaler) -> None:
        """A loss was multiplied by the scale of AMP."""

    def step_begins(self) -> None:
        """An optimizer is about to step; it may call backward itself."""

    def stepped(self, optimizer: Optimizer) -> None:
        """An optimizer has stepped, or its step was skipped."""

    def fetched(self, loader: DataLoader[Any], batch: object) -> None:
        """A loader has delivered a batch."""


def listen(listener: ScriptListener) -> list[Any]:
    """Tell `listener` of everything from now on; each of what is returned has a `remove()`."""
    begins: Any = lambda *_: listener.step_begins()  # noqa: E731
    stepped: Any = lambda optimizer, *_: listener.stepped(optimizer)  # noqa: E731
    return [
        Tap(torch.autograd, "backward", lambda original: _backward(listener, original)),
        *_clipping(listener),
        *_scaling(listener),
        *_loading(listener),
        Tap(BaseProcess, "start", lambda original: _starting(listener, original)),
        register_optimizer_step_pre_hook(begins),
        register_optimizer_step_post_hook(stepped),
    ]


def _backward(listener: ScriptListener, original: Call) -> Call:
    def backward(tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> Any:
        roots = (tensors,) if isinstance(tensors, Tensor) else tensors
        weights = (grad_tensors,) if isinstance(grad_tensors, Tensor) else grad_tensors
        if isinstance(roots, list | tuple) and all(isinstance(root, Tensor) for root in roots):
            weights = weights or [None] * len(roots)
            listener.backward_begins(roots, weights, sys._getframe())  # noqa: SLF001
        result = original(tensors, grad_tensors, *args, **kwargs)
        listener.backward_ended()
        return result

    return backward


def _starting(listener: ScriptListener, original: Call) -> Call:
    def start(self: BaseProcess) -> None:
        listener.process_begins()
        original(self)

    return start


def _clipping(listener: ScriptListener) -> list[Tap]:
    def with_norm(original: Call) -> Call:
        def clip(parameters: Any, max_norm: float, *args: Any, **kwargs: Any) -> Any:
            listener.clipped(float(max_norm))
            return original(parameters, max_norm, *args, **kwargs)

        return clip

    def by_value(original: Call) -> Call:
        def clip(*args: Any, **kwargs: Any) -> Any:
            listener.clipped_by_value()
            return original(*args, **kwargs)

        return clip

    return [
        Tap(clip_grad, "_clip_grads_with_norm_", with_norm),
        Tap(nn.utils, "clip_grads_with_norm_", with_norm),
        Tap(nn.utils, "clip_grad_value_", by_value),
    ]


def _scaling(listener: ScriptListener) -> list[Tap]:
    def scale(original: Call) -> Call:
        def scaled(self: GradScaler, outputs: Any) -> Any:
            if self.is_enabled():
                listener.scaled(self)
            return original(self, outputs)

        return scaled

    def step(original: Call) -> Call:
        def stepped(self: GradScaler, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
            result = original(self, optimizer, *args, **kwargs)
            listener.stepped(optimizer)
            return result

        return stepped

    return [Tap(GradScaler, "scale", scale), Tap(GradScaler, "step", step)]


def _loading(listener: ScriptListener) -> list[Tap]:
    loaders: dict[int, DataLoader[Any]] = {}  # by the identity of their last iterator

    def iterate(original: Call) -> Call:
        def begun(self: DataLoader[Any]) -> Any:
            iterator = original(self)
            loaders[id(iterator)] = self
            return iterator

        return begun

    def fetch(original: Call) -> Call:
        def fetched(self: Any) -> Any:
            batch = original(self)
            if (loader := loaders.get(id(self))) is not None:
                listener.fetched(loader, batch)
            return batch

        return fetched

    iterator = dataloader._BaseDataLoaderIter  # noqa: SLF001  (every loader's iterator)
    return [Tap(DataLoader, "__iter__", iterate), Tap(iterator, "__next__", fetch)]
