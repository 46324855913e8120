"""Reversible taps on torch's entry points: what a script does there is told to a listener."""

import functools
import inspect
import os
import time
import types
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.autograd.graph import GradientEdge
from torch.jit import _builtins
from torch.nn import functional
from torch.nn.utils import clip_grad
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
    arguments: Mapping[str, Any]  # by name, with the defaults of what was not given

    def detached(self) -> "LossCall":
        """The same without the graph, so that it may be kept."""
        arguments = {
            name: each.detach() if isinstance(each, Tensor) else each
            for name, each in self.arguments.items()
        }
        return replace(self, loss=self.loss.detach(), arguments=arguments)


class Listener(Protocol):
    """Whoever wants to know. Its methods must not raise: they run inside somebody's training."""

    def backward_begins(self, roots: Sequence[Tensor], *, whole: bool) -> None:
        """`backward()` was called on `roots`; not `whole` if for some gradients only."""

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

    def scheduler_stepped(self, scheduler: lr_scheduler.LRScheduler) -> None:
        """A learning-rate scheduler was stepped."""

    @property
    def minds_forward(self) -> bool:
        """Whether to tell what functions are called in a forward pass."""

    def nonfinite_replaced(self, tensor: Tensor) -> None:
        """What is not finite in a tensor is about to be replaced."""

    def attended(
        self,
        query: Tensor,
        key: Tensor,
        mask: Tensor | None,
        *,
        is_causal: bool,
        scale: float | None,
    ) -> None:
        """Attention was computed."""

    @property
    def is_deaf(self) -> bool:
        """Whether a backward is of no interest now: much time is saved by not telling of it."""

    @property
    def minds_backward_ends(self) -> bool:
        """Whether to tell of it: a call saved in most steps."""

    @property
    def is_evaluating(self) -> bool:
        """Whether a loss may be that of a validation batch although it has a graph."""

    @property
    def minds_losses(self) -> bool:
        """Whether to tell of a loss in training: much is saved in steps that are not read deep."""

    def loss_computed(self, call: "LossCall") -> None:
        """A loss function has returned."""

    def loader_begins(self, loader: DataLoader[Any], iterator: object) -> None:
        """Somebody began to iterate over a loader."""

    def batch_fetched(self, iterator: object, batch: object, waited: float) -> None:
        """A loader's iterator delivered a batch."""

    def parameters_joined(self, optimizer: Optimizer) -> None:
        """An optimizer was given a parameter group: it is being made, or it grows."""

    def mode_changed(self, module: nn.Module) -> None:
        """`train()` or `eval()` was called on a module."""


class Tap:
    """One replaced attribute. A tap that another has covered lets calls pass once removed."""

    def __init__(
        self,
        target: object,
        name: str,
        around: Callable[[Callable[..., Any]], Callable[..., Any]],
        *,
        guarded: bool = True,
    ) -> None:
        self._target, self._name = target, name
        self._inherited = isinstance(target, type) and name not in vars(target)
        self._original = original = inspect.getattr_static(target, name)
        self._removed = False
        watched = around(original)
        process, getpid, is_compiling = os.getpid(), os.getpid, torch.compiler.is_compiling

        def tapped(*args: Any, **kwargs: Any) -> Any:
            # Compiled code and forked workers are left alone.
            if self._removed or is_compiling() or getpid() != process:
                return original(*args, **kwargs)
            return watched(*args, **kwargs)

        wrapper: Any = watched  # which then has to see for itself that nobody listens any more
        if guarded:
            # With the globals of the original, torch.jit.script compiles one as it would the other.
            code, closure = tapped.__code__, tapped.__closure__
            known = getattr(original, "__globals__", globals())
            wrapper = types.FunctionType(code, known, name, None, closure)
            _script_as(original, wrapper)
        functools.update_wrapper(wrapper, original)
        wrapper.holter_tap = self  # after the update, which copies that of a tap below
        setattr(target, name, wrapper)

    def remove(self) -> None:
        """Put the original back, past all taps that have been removed; safe to call twice."""
        self._removed = True
        current = inspect.getattr_static(self._target, self._name)
        bottom = self
        while (tap := getattr(current, "holter_tap", None)) is not None and tap._removed:  # noqa: SLF001
            bottom, current = tap, tap._original  # noqa: SLF001
        if not bottom._inherited or current is not bottom._original:  # noqa: SLF001
            setattr(self._target, self._name, current)
        elif self._name in vars(self._target):
            delattr(self._target, self._name)


def _script_as(original: Any, wrapper: Any) -> None:
    """Let torch.jit.script take the wrapper of a function of torch's core for that function."""
    builtins: Any = _builtins  # without types
    table = builtins._get_builtin_table()  # noqa: SLF001
    name = table.get(id(original))
    if name is not None:
        table[id(wrapper)] = name
        weakref.finalize(wrapper, table.pop, id(wrapper), None).atexit = False


def tap_everything(listener: Listener) -> list[Tap]:
    """Tap all entry points that a watch listens to."""
    return [
        Tap(torch.autograd, "backward", functools.partial(_backward, listener), guarded=False),
        *_clipping(listener),
        *_scaling(listener),
        *_scheduling(listener),
        *_loss_functions(listener),
        *_loading(listener),
        *_replacing(listener),
        Tap(functional, "scaled_dot_product_attention", functools.partial(_attention, listener)),
        Tap(Optimizer, "add_param_group", functools.partial(_add_param_group, listener)),
        Tap(nn.Module, "train", functools.partial(_train, listener)),
    ]


Call = Callable[..., Any]


def _backward(listener: Listener, original: Call) -> Call:
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if listener.is_deaf:
            return original(tensors, *args, **kwargs)
        single = isinstance(tensors, Tensor | GradientEdge)
        roots = (tensors,) if single else tuple(tensors)  # which may be a generator
        listener.backward_begins(
            [root for root in roots if isinstance(root, Tensor)], whole=not kwargs.get("inputs")
        )
        result = original(tensors if single else roots, *args, **kwargs)
        if listener.minds_backward_ends:
            listener.backward_ends()
        return result

    return backward


def _clipping(listener: Listener) -> list[Tap]:
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

    # `clip_grad_norm_` looks this helper up when it is called: wherever a script has imported it
    # from, and however early, it is heard.
    return [
        Tap(clip_grad, "_clip_grads_with_norm_", with_norm),
        Tap(nn.utils, "clip_grads_with_norm_", with_norm),
        Tap(nn.utils, "clip_grad_value_", by_value),
    ]


def _scaling(listener: Listener) -> list[Tap]:
    def scale(original: Call) -> Call:
        def scale_outputs(self: GradScaler, outputs: Any) -> Any:
            result = original(self, outputs)
            if self.is_enabled():
                losses = [outputs] if isinstance(outputs, Tensor) else outputs
                scaled = [result] if isinstance(outputs, Tensor) else result
                for loss, product in zip(losses, scaled, strict=False):
                    listener.loss_scaled(self, loss, product)
            return result

        return scale_outputs

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
    depth = 0  # a scheduler steps itself when it is made, and those it is made of: count none

    def make(original: Call) -> Call:
        def made(self: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            depth += 1
            try:
                return original(self, *args, **kwargs)
            finally:
                depth -= 1

        return made

    def step(original: Call) -> Call:
        def stepped(self: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            depth += 1
            try:
                result = original(self, *args, **kwargs)
            finally:
                depth -= 1
            if depth == 0:
                listener.scheduler_stepped(self)
            return result

        return stepped

    classes = [
        each
        for each in vars(lr_scheduler).values()
        if isinstance(each, type) and issubclass(each, lr_scheduler.LRScheduler)
    ]
    return [
        *(Tap(each, "step", step) for each in classes if "step" in vars(each)),
        *(Tap(each, "__init__", make) for each in classes if "__init__" in vars(each)),
    ]


def _loss_functions(listener: Listener) -> list[Tap]:
    inside = False  # one loss function may call another: the outer one is the script's
    is_grad_enabled = torch.is_grad_enabled

    def around(original: Call) -> Call:
        defaults = _defaults(original)

        def computed(*args: Any, **kwargs: Any) -> Any:
            if inside or (
                is_grad_enabled() and not listener.is_evaluating and not listener.minds_losses
            ):  # as in most of training
                return original(*args, **kwargs)
            return told(original, defaults, args, kwargs)

        return computed

    def told(original: Call, defaults: Mapping[str, Any], args: Any, kwargs: Any) -> Any:
        nonlocal inside
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
                    arguments={**defaults, **dict(zip(defaults, args, strict=False)), **kwargs},
                )
            )
        return result

    return [Tap(functional, name, around) for name in LOSS_FUNCTIONS if name in vars(functional)]


def _defaults(function: Call) -> dict[str, Any]:
    """The parameters of a function in their order, None where there is no default."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # somebody has put something odd in its place
        return {}
    empty = inspect.Parameter.empty
    return {name: None if p.default is empty else p.default for name, p in parameters.items()}


def _loading(listener: Listener) -> list[Tap]:
    def iterate(original: Call) -> Call:
        def begun(self: DataLoader[Any]) -> Any:
            iterator = original(self)
            listener.loader_begins(self, iterator)
            return iterator

        return begun

    def fetch(original: Call) -> Call:
        def fetched(self: Any) -> Any:
            began = time.perf_counter()
            batch = original(self)
            listener.batch_fetched(self, batch, time.perf_counter() - began)
            return batch

        return fetched

    iterator = dataloader._BaseDataLoaderIter  # noqa: SLF001  (every loader's iterator)
    return [Tap(DataLoader, "__iter__", iterate), Tap(iterator, "__next__", fetch)]


def _replacing(listener: Listener) -> list[Tap]:
    def around(original: Call) -> Call:
        def replaced(*args: Any, **kwargs: Any) -> Any:
            if listener.minds_forward and torch.is_grad_enabled():
                given = args[0] if args else kwargs.get("input")
                if isinstance(given, Tensor):
                    listener.nonfinite_replaced(given)
            return original(*args, **kwargs)

        return replaced

    return [
        Tap(target, name, around)
        for target in (torch, Tensor)
        for name in ("nan_to_num", "nan_to_num_")
    ]


def _attention(listener: Listener, original: Call) -> Call:
    def attend(
        query: Any, key: Any, value: Any, attn_mask: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        result = original(query, key, value, attn_mask, *args, **kwargs)
        if listener.minds_forward and torch.is_grad_enabled():
            causal = args[1] if len(args) > 1 else kwargs.get("is_causal", False)
            scale = kwargs.get("scale")
            listener.attended(query, key, attn_mask, is_causal=bool(causal), scale=scale)
        return result

    return attend


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
