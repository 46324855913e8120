"""Probe: the model called again as its training calls it, with other inputs."""

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from holter.lab.batches import cloned, contents, leaves, opaque, replaced, tensors
from holter.lab.calls import inputs_replaced
from holter.lab.changes.learning_rate import warmup_begun
from holter.lab.changes.modes import in_eval_mode
from holter.lab.inapplicable import InapplicableError
from holter.lab.randomness import same_randomness
from holter.lab.setup import Batch, Setup

_ULPS = 4  # units in the last place that are put down to rounding
_BEYOND = 1e5  # times the largest other value: what lies there, and is constant, is a mask
_REPEATS = 10  # times the difference of two equal calls that is put down to rounding
_ELEMENTS = 2**23  # of an output that are looked at
_TRACED = 2**28  # elements of the outputs of all modules that are kept

Tensors = dict[str, Tensor]


class Probe:
    """The first call of the model in a forward pass, which can be made again with other inputs.

    Calls are made in eval mode, unless `as_trained`, without gradients, with the same random
    numbers each time, and outside of autocast where the model can do without: that leaves less to
    rounding.
    """

    def __init__(self, setup: Setup, batch: Batch, *, as_trained: bool = False) -> None:
        self._setup = setup
        self._model = setup.entry
        arguments, self._autocast, further = _captured(setup, batch)
        self._given = _named(self._model, *arguments)
        self._count = len(arguments[0])  # positional ones
        self._way: tuple[bool, bool] | None = None  # with a graph, in autocast
        self._mode = nullcontext if as_trained else partial(in_eval_mode, setup.model)
        self.inputs: Tensors = {
            name + path: leaf
            for name, value in self._given.items()
            for path, leaf in contents(value).items()
        }
        # What looks like a further output: `output, hidden = model(data, hidden)`.
        self.state = {
            name
            for place, (name, each) in enumerate(self.inputs.items())
            if place and each.is_floating_point() and (each.shape, each.dtype) in further
        }
        self.opaque = {
            name + path: kind
            for name, value in self._given.items()
            for path, kind in opaque(value).items()
        }
        if not self.inputs:
            kinds = [f"{name} is {kind}" for name, kind in self.opaque.items()]
            raise InapplicableError(f"the model gets no dense tensor{_beside(kinds)}")

    def outputs(
        self, changes: Mapping[str, Tensor] | None = None, *, everything: bool = False
    ) -> Tensors:
        """The floating-point tensors that come out, by name, with some inputs changed.

        With `everything`, single numbers are among them, such as a loss that the model computes,
        and whole numbers, such as lengths.
        """
        with same_randomness(self._setup):
            self._way = self._way or self._simplest_way()
        return outputs_of(self._call(changes or {}, self._way), everything=everything)

    def with_graph(self) -> Tensors:
        """The floating-point tensors that come out, with the graph that a training step has."""
        return outputs_of(self._call({}, (True, True)))

    def traced(self, changes: Mapping[str, Tensor] | None = None) -> list[tuple[str, Tensor]]:
        """What each module inside gives out, in the order in which they finish."""
        told: list[tuple[str, Tensor]] = []

        def listener(name: str) -> Any:
            def tell(_: nn.Module, __: Any, output: Any) -> None:
                if sum(each.numel() for _, each in told) < _TRACED:
                    told.extend((name, each.clone()) for each in outputs_of(output).values())

            return tell

        handles = [
            module.register_forward_hook(listener(name))
            for name, module in self._setup.model.named_modules()
            if module not in (self._setup.model, self._model)
        ]
        try:
            self.outputs(changes)
        finally:
            for handle in handles:
                handle.remove()
        return told

    def module(self, name: str) -> nn.Module:
        """The module of that name."""
        return self._setup.model.get_submodule(name)

    def loss(self, batch: Batch, changes: Mapping[str, Tensor]) -> float:
        """The loss of a batch with some inputs of the model's first call changed, as trained."""
        calls = 0

        def change(args: Any, kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            return self._arguments(changes) if calls == 1 else (args, kwargs)

        with inputs_replaced(self._model, change):
            return loss_of(self._setup, batch)

    def _arguments(self, changes: Mapping[str, Tensor]) -> Any:
        made = [
            cloned(replaced(value, _below(name, changes))) for name, value in self._given.items()
        ]
        names = list(self._given)[self._count :]
        return tuple(made[: self._count]), dict(zip(names, made[self._count :], strict=True))

    def _call(self, changes: Mapping[str, Tensor], way: tuple[bool, bool]) -> Any:
        args, kwargs = self._arguments(changes)
        with_graph, in_autocast = way
        with ExitStack() as around:
            # Warnings about such a call are of no use to the user.
            around.enter_context(warnings.catch_warnings(action="ignore"))
            around.enter_context(same_randomness(self._setup))
            around.enter_context(self._mode())
            around.enter_context(torch.set_grad_enabled(with_graph))
            if in_autocast and self._autocast is not None:
                around.enter_context(self._autocast())
            return self._model(*args, **kwargs)

    def _simplest_way(self) -> tuple[bool, bool]:
        """How the model can be called: some need autocast, some take gradients themselves."""
        ways = [(False, False), (False, True), (True, True)]
        for way in ways[:-1]:
            try:
                self._call({}, way)
            except RuntimeError:
                continue
            return way
        return ways[-1]


def probed(setup: Setup, batch: Batch, *, as_trained: bool = False) -> tuple[Probe, Tensors]:
    """Return a probe of the model and its outputs, or raise InapplicableError."""
    probe = Probe(setup, batch, as_trained=as_trained)
    try:
        given = probe.outputs()
    except Exception as error:
        raise InapplicableError(
            f"the model cannot be called {'again' if as_trained else 'in eval mode'}"
            f" ({type(error).__name__})"
        ) from error
    if not given:
        raise InapplicableError("the model's output holds no floating-point tensors")
    if not any(each.isfinite().any() for each in given.values()):
        raise InapplicableError("the model's outputs are not finite")
    return probe, given


def loss_of(setup: Setup, batch: Batch) -> float:
    """The loss of a batch, with the random numbers that come next, which are not used up.

    With a graph, as some losses take gradients themselves.
    """
    with same_randomness(setup), torch.enable_grad():
        return float(setup.loss(batch).detach().mean())


def some_batches(setup: Setup, count: int) -> list[Batch]:
    """Return the first training batches, or raise InapplicableError if there are none."""
    batches = setup.batches(count)
    if not batches:
        raise InapplicableError("there are no training batches")
    return batches


def outputs_of(value: Any, *, everything: bool = False) -> Tensors:
    """The floating-point tensors in an output, or all, which may be a tensor, or hold some."""
    return {
        name: _thinned(each)
        for name, each in leaves(value).items()
        if everything or (each.is_floating_point() and each.dim())
    }


def _thinned(output: Tensor) -> Tensor:
    """The output, or a regular part of a large one: of its widest dimension, as of a vocabulary."""
    if output.numel() <= _ELEMENTS or output.dim() < 2:
        return output
    dim = max(range(1, output.dim()), key=lambda each: output.shape[each])
    stride = -(-output.numel() // _ELEMENTS)
    return output.index_select(
        dim, torch.arange(0, output.shape[dim], stride, device=output.device)
    )


def difference(one: Tensor, other: Tensor, *, of: Tensor | None = None) -> Tensor:
    """How much two outputs differ, by element, in units of the spread of the first, or `of` all."""
    first, second = _exact(one), _exact(other)
    apart = (first - second).abs()
    same = (first == second) | (first.isnan() & second.isnan())
    apart = torch.where(same, 0.0, apart).nan_to_num(nan=torch.inf)
    return apart / spread(one if of is None else of)


def _exact(output: Tensor) -> Tensor:
    """In double precision, which not every device has."""
    return output.detach().cpu().double()


def per_slice(changes: Tensor, dim: int) -> Tensor:
    """The largest change in each slice along a dimension."""
    return changes.movedim(dim, 0).flatten(1).amax(1) if changes.dim() > 1 else changes


def spread(output: Tensor) -> float:
    """The standard deviation of an output, or its size where it is constant."""
    values = _ordinary(output)
    if not len(values):
        return 1.0
    size = float(values.abs().max())
    wide = float(values.std(unbiased=False))
    return wide if wide > 1e-6 * size else size or 1.0


def _ordinary(output: Tensor) -> Tensor:
    """The finite values of an output, without those of a mask: one constant far beyond the rest."""
    values = _exact(output)
    values = values[values.isfinite()]
    size = float(values.abs().max()) if len(values) else 0.0
    if size:
        is_beyond = values.abs() > size / _BEYOND
        beyond = values[is_beyond]
        if len(beyond) < len(values) and float(beyond.max() - beyond.min()) < size / _BEYOND:
            return values[~is_beyond]
    return values


def rounding(one: Tensor, again: Tensor) -> float:
    """The difference of two calls that may be rounding: by measurement, and by the data type."""
    measured = float(difference(one, again).max()) if one.numel() else 0.0
    values = _ordinary(one)
    size = float(values.abs().max()) if len(values) else 1.0
    return max(_REPEATS * measured, _ULPS * torch.finfo(one.dtype).eps * size / spread(one))


def warm_up(setup: Setup, batches: Sequence[Batch], steps: int) -> None:
    """Train for some steps, so that what begins at zero has left it."""
    with warmup_begun(setup):
        for number in range(steps):
            setup.step(batches[number % len(batches)])


_Kind = tuple[torch.Size, torch.dtype]


def _captured(setup: Setup, batch: Batch) -> tuple[Any, Callable[[], Any] | None, set[_Kind]]:
    """Arguments of the model's first call, the autocast around it, and its outputs after one."""
    calls: list[tuple[Any, Callable[[], Any] | None]] = []
    kinds: list[set[_Kind]] = []

    def remember(_: nn.Module, args: Any, kwargs: Any) -> None:
        if not calls:
            calls.append((cloned((args, kwargs)), _autocast(setup.device.type)))

    def see(_: nn.Module, __: Any, output: Any) -> None:
        kinds.append({(each.shape, each.dtype) for each in tensors(output)[1:] if each.dim()})

    handles = [
        setup.entry.register_forward_pre_hook(remember, with_kwargs=True, prepend=True),
        setup.entry.register_forward_hook(see),
    ]
    try:
        loss_of(setup, batch)
    finally:
        for handle in handles:
            handle.remove()
    if not calls:
        raise InapplicableError("the step calls parts of the model, not the model itself")
    return *calls[0], kinds[0]


def _autocast(kind: str) -> Callable[[], Any] | None:
    if not torch.is_autocast_enabled(kind):
        return None
    return partial(torch.autocast, kind, dtype=torch.get_autocast_dtype(kind))


def _named(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments by the names of the parameters of `forward` that they are given to."""
    try:
        parameters = list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):  # not written in Python
        parameters = []
    named = [
        parameter.name
        for parameter in parameters
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    names = [*named[: len(args)], *(f"argument {place}" for place in range(len(named), len(args)))]
    return {**dict(zip(names, args, strict=True)), **kwargs}


def _below(name: str, changes: Mapping[str, Tensor]) -> Tensors:
    """Return the changes of one argument by their paths within it."""
    return {
        path.removeprefix(name): value for path, value in changes.items() if path.startswith(name)
    }


def _beside(kinds: Sequence[str]) -> str:
    return f": {', '.join(kinds)}" if kinds else ""
