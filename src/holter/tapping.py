"""Reversible taps on torch's entry points: what a script does there is told to a listener."""

import functools
import inspect
import os
import time
import types
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.nn import functional
from torch.optim import Optimizer, lr_scheduler
from torch.utils.data import DataLoader, dataloader

LOSS_FUNCTIONS = (
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "linear_cross_entropy",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
)


@dataclass(frozen=True, slots=True)
class LossCall:
    """A call of a loss function; `has_graph` if any of what it was given requires a gradient."""

    function: str
    loss: Tensor
    samples: int
    has_graph: bool


class Listener(Protocol):
    """Whoever wants to know. Its methods must not raise: they run inside somebody's training."""

    def backward_begins(self, roots: Sequence[Tensor]) -> None:
        """`backward()` was called on `roots`."""

    def backward_ends(self) -> None:
        """`backward()` has returned."""

    def clip_begins(self, parameters: Iterable[Tensor]) -> None:
        """Gradients of `parameters` are about to be clipped."""

    def clip_ends(self, norm: Tensor | None, limit: float) -> None:
        """Gradients were clipped; `norm` is None for clipping by value."""

    def loss_scaled(self, scaler: GradScaler, loss: Tensor, scaled: Tensor) -> None:
        """A GradScaler multiplied a loss."""

    def gradients_unscaled(self, optimizer: Optimizer) -> None:
        """A GradScaler has divided the gradients of an optimizer by its scale."""

    def scaler_stepped(self, optimizer: Optimizer) -> None:
        """A GradScaler has stepped an optimizer, or skipped the step."""

    def scheduler_stepped(self) -> None:
        """A learning-rate scheduler was stepped."""

    def loss_computed(self, call: "LossCall") -> None:
        """A loss function has returned."""

    def loader_begins(self, loader: DataLoader[Any]) -> None:
        """Somebody began to iterate over a loader."""

    def batch_fetched(self, loader: DataLoader[Any], batch: object, waited: float) -> None:
        """A loader delivered a batch."""

    def parameters_joined(self, optimizer: Optimizer) -> None:
        """An optimizer was given a parameter group: it is being made, or it grows."""

    def mode_changed(self, module: nn.Module) -> None:
        """`train()` or `eval()` was called on a module."""


class Tap:
    """One replaced attribute. A tap that another has covered lets calls pass once removed."""

    def __init__(
        self, target: object, name: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> None:
        self._target, self._name = target, name
        self._original = original = inspect.getattr_static(target, name)
        self._removed = False
        watched = around(original)
        process, getpid, is_compiling = os.getpid(), os.getpid, torch.compiler.is_compiling

        def tapped(*args: Any, **kwargs: Any) -> Any:
            # Compiled code and forked workers are left alone.
            if self._removed or is_compiling() or getpid() != process:
                return original(*args, **kwargs)
            return watched(*args, **kwargs)

        # With the globals of the original, torch.jit.script compiles the one as it would the other.
        self._tapped = functools.wraps(original)(
            types.FunctionType(
                tapped.__code__, original.__globals__, name, None, tapped.__closure__
            )
        )
        setattr(target, name, self._tapped)

    def remove(self) -> None:
        """Put the original back; safe to call twice."""
        if not self._removed and inspect.getattr_static(self._target, self._name) is self._tapped:
            setattr(self._target, self._name, self._original)
        self._removed = True


def tap_everything(listener: Listener) -> list[Tap]:
    """Tap all entry points that a watch listens to."""
    return [
        Tap(torch.autograd, "backward", functools.partial(_backward, listener)),
        *_clipping(listener),
        *_scaling(listener),
        *_scheduling(listener),
        *_loss_functions(listener),
        *_loading(listener),
        Tap(Optimizer, "add_param_group", functools.partial(_add_param_group, listener)),
        Tap(nn.Module, "train", functools.partial(_train, listener)),
    ]


Call = Callable[..., Any]


def _backward(listener: Listener, original: Call) -> Call:
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        listener.backward_begins([tensors] if isinstance(tensors, Tensor) else list(tensors))
        result = original(tensors, *args, **kwargs)
        listener.backward_ends()
        return result

    return backward


def _clipping(listener: Listener) -> list[Tap]:
    def by_norm(original: Call) -> Call:
        def clip(parameters: Any, max_norm: float, *args: Any, **kwargs: Any) -> Any:
            parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
            listener.clip_begins(parameters)
            norm = original(parameters, max_norm, *args, **kwargs)
            listener.clip_ends(norm, float(max_norm))
            return norm

        return clip

    def with_norm(original: Call) -> Call:
        def clip(
            parameters: Any, max_norm: float, total_norm: Tensor, *args: Any, **kw: Any
        ) -> Any:
            parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
            listener.clip_begins(parameters)
            original(parameters, max_norm, total_norm, *args, **kw)
            listener.clip_ends(total_norm, float(max_norm))

        return clip

    def by_value(original: Call) -> Call:
        def clip(parameters: Any, clip_value: float, *args: Any, **kwargs: Any) -> Any:
            parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
            listener.clip_begins(parameters)
            original(parameters, clip_value, *args, **kwargs)
            listener.clip_ends(None, float(clip_value))

        return clip

    functions = {
        "clip_grad_norm_": by_norm,
        "clip_grads_with_norm_": with_norm,
        "clip_grad_value_": by_value,
    }
    return [Tap(nn.utils, name, around) for name, around in functions.items()]


def _scaling(listener: Listener) -> list[Tap]:
    def scale(original: Call) -> Call:
        def scaled(self: GradScaler, outputs: Any) -> Any:
            result = original(self, outputs)
            if isinstance(outputs, Tensor) and self.is_enabled():
                listener.loss_scaled(self, outputs, result)
            return result

        return scaled

    def unscale(original: Call) -> Call:
        def unscaled(self: GradScaler, optimizer: Optimizer) -> Any:
            result = original(self, optimizer)
            listener.gradients_unscaled(optimizer)
            return result

        return unscaled

    def step(original: Call) -> Call:
        def stepped(self: GradScaler, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
            if not self.is_enabled():
                return original(self, optimizer, *args, **kwargs)
            result = original(self, optimizer, *args, **kwargs)
            listener.scaler_stepped(optimizer)
            return result

        return stepped

    methods = {"scale": scale, "unscale_": unscale, "step": step}
    return [Tap(GradScaler, name, around) for name, around in methods.items()]


def _scheduling(listener: Listener) -> list[Tap]:
    depth = 0  # a scheduler made of schedulers steps them too: that is one step

    def step(original: Call) -> Call:
        def stepped(self: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            depth += 1
            try:
                result = original(self, *args, **kwargs)
            finally:
                depth -= 1
            if depth == 0:
                listener.scheduler_stepped()
            return result

        return stepped

    return [
        Tap(each, "step", step)
        for each in vars(lr_scheduler).values()
        if isinstance(each, type)
        and issubclass(each, lr_scheduler.LRScheduler)
        and "step" in vars(each)
    ]


def _loss_functions(listener: Listener) -> list[Tap]:
    inside = False  # one loss function may call another: the outer one is the script's

    def around(original: Call) -> Call:
        def computed(*args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            if inside:
                return original(*args, **kwargs)
            inside = True
            try:
                result = original(*args, **kwargs)
            finally:
                inside = False
            tensors = [each for each in (*args, *kwargs.values()) if isinstance(each, Tensor)]
            if isinstance(result, Tensor) and tensors and result.is_floating_point():
                listener.loss_computed(
                    LossCall(
                        function=original.__name__,
                        loss=result,
                        samples=max(len(tensors[0]), 1) if tensors[0].dim() else 1,
                        has_graph=any(each.requires_grad for each in tensors),
                    )
                )
            return result

        return computed

    return [Tap(functional, name, around) for name in LOSS_FUNCTIONS if name in vars(functional)]


def _loading(listener: Listener) -> list[Tap]:
    loaders: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def iterate(original: Call) -> Call:
        def begun(self: DataLoader[Any]) -> Any:
            iterator = original(self)
            loaders[iterator] = weakref.ref(self)
            listener.loader_begins(self)
            return iterator

        return begun

    def fetch(original: Call) -> Call:
        def fetched(self: Any) -> Any:
            began = time.perf_counter()
            batch = original(self)
            waited = time.perf_counter() - began
            loader = loaders.get(self, lambda: None)()
            if loader is not None:
                listener.batch_fetched(loader, batch, waited)
            return batch

        return fetched

    iterator = dataloader._BaseDataLoaderIter  # noqa: SLF001  (every loader's iterator)
    return [Tap(DataLoader, "__iter__", iterate), Tap(iterator, "__next__", fetch)]


def _add_param_group(listener: Listener, original: Call) -> Call:
    def add_param_group(self: Optimizer, param_group: Any) -> Any:
        result = original(self, param_group)
        listener.parameters_joined(self)
        return result

    return add_param_group


def _train(listener: Listener, original: Call) -> Call:
    def train(self: nn.Module, mode: bool = True) -> Any:
        result = original(self, mode)
        listener.mode_changed(self)
        return result

    return train
