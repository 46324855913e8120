"""Runs a plain training script with a peer attached from outside, as its user would attach it."""

import contextlib
import functools
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from bench.peers.peer import Alarm
from holter.scripts.discovery import live_models


class Monitor(Protocol):
    """A peer at work on one model."""

    def step(self, loss: float | None) -> None:
        """Hear that a step was made, with the loss that its script has at hand."""

    def alarms(self) -> Sequence[Alarm]:
        """What it says in the end."""


@dataclass
class Patient:
    """A monitored model, with the optimizer that it was attached with."""

    model: nn.Module
    optimizer: Optimizer
    monitor: Monitor
    others: list[Optimizer] = field(default_factory=list)  # those that were there beside


def run_with(script: Path, attach: Callable[[nn.Module, Optimizer], Monitor]) -> list[Alarm]:
    """Run a script to its end with a monitor on every model that it trains."""
    ward = _Ward(attach)
    with ward.listening(), contextlib.suppress(SystemExit):
        sys.argv = [str(script)]
        runpy.run_path(str(script), run_name="__main__")
    alarms = [alarm for each in ward.patients for alarm in each.monitor.alarms()]
    return list({(each.name, each.note): each for each in reversed(alarms)}.values())


class _Ward:
    """Attaches where a user would write the line: before the first forward pass of training."""

    def __init__(self, attach: Callable[[nn.Module, Optimizer], Monitor]) -> None:
        self.patients: list[Patient] = []
        self._attach = attach
        self._optimizers: list[Optimizer] = []
        self._turned_away: set[tuple[int, int]] = set()
        self._depth = 0
        self._loss: float | None = None
        self._before_scaling: tuple[Tensor | None, Tensor | None] = (None, None)
        self._stepped: Optimizer | None = None

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Wrap the entry points of torch that a training loop calls."""
        scaler = torch.amp.GradScaler
        hook = register_optimizer_step_post_hook(lambda optimizer, *_: self._step(optimizer))
        with (
            _wrapped(Optimizer, "__init__", before=self._made),
            _wrapped(nn.Module, "__call__", before=self._enter, after=self._leave),
            _wrapped(Tensor, "backward", before=self._backward),
            _wrapped(scaler, "scale", after=self._scaled),
            _wrapped(scaler, "step", before=self._scaler_steps, after=self._scaler_stepped),
        ):
            yield
        hook.remove()

    def _made(self, optimizer: Optimizer, *_: Any, **__: Any) -> None:
        self._optimizers.append(optimizer)

    def _enter(self, module: nn.Module, *_: Any, **__: Any) -> None:
        self._depth += 1
        if self._depth == 1 and self._optimizers and torch.is_grad_enabled():
            self._meet(module)

    def _leave(self, *_: Any, **__: Any) -> None:
        self._depth -= 1

    def _meet(self, module: nn.Module) -> None:
        sight = id(module), len(self._optimizers)
        if sight in self._turned_away or any(module is each.model for each in self.patients):
            return
        self._turned_away.add(sight)
        model = _root(module)
        if any(model is each.model for each in self.patients):
            return
        optimizer = self._optimizer_of(model)
        if optimizer is not None:
            others = [each for each in self._optimizers if each is not optimizer]
            self.patients.append(Patient(model, optimizer, self._attach(model, optimizer), others))

    def _optimizer_of(self, model: nn.Module) -> Optimizer | None:
        """The one that holds most of the model, or else one that holds no living model at all."""
        own = {id(each) for each in model.parameters()}
        best = max(reversed(self._optimizers), key=lambda each: len(own & _held(each)))
        if own & _held(best):
            return best
        living = {id(p) for each in live_models() for p in each.parameters()} if own else set()
        stale = [each for each in self._optimizers if own and not living & _held(each)]
        return stale[-1] if stale else None

    def _backward(self, loss: Tensor, *_: Any, **__: Any) -> None:
        scaled, plain = self._before_scaling
        value = plain if loss is scaled and plain is not None else loss
        self._loss = float(value.detach()) if value.numel() == 1 else None

    def _scaled(self, result: Any, _: object, outputs: Any, *__: Any, **___: Any) -> None:
        self._before_scaling = (result, outputs)

    def _scaler_steps(self, *_: Any, **__: Any) -> None:
        self._stepped = None

    def _scaler_stepped(self, _: Any, __: object, optimizer: Optimizer, *___: Any) -> None:
        if self._stepped is not optimizer:  # it was skipped; the loop goes on all the same
            self._step(optimizer)

    def _step(self, optimizer: Optimizer) -> None:
        self._stepped = optimizer
        for each in self.patients:
            known = any(optimizer is other for other in (each.optimizer, *each.others))
            if not known and {id(p) for p in each.model.parameters()} & _held(optimizer):
                each.optimizer = optimizer  # made since then, in place of the one before
            if optimizer is each.optimizer:
                each.monitor.step(self._loss)


def _held(optimizer: Optimizer) -> set[int]:
    return {id(each) for group in optimizer.param_groups for each in group["params"]}


def _root(module: nn.Module) -> nn.Module:
    """The whole that a called module is a part of: scripts may call `model.encoder` alone."""
    containers = (nn.ModuleList, nn.ModuleDict)
    for whole in live_models():
        if not isinstance(whole, containers) and any(module is each for each in whole.modules()):
            return whole
    return module


@contextlib.contextmanager
def _wrapped(
    owner: type,
    name: str,
    *,
    before: Callable[..., None] | None = None,
    after: Callable[..., None] | None = None,
) -> Iterator[None]:
    """Call `before` with a method's arguments, and `after` with its result and its arguments."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result = None
        if before is not None:
            before(*args, **kwargs)
        try:
            result = original(*args, **kwargs)
        finally:
            if after is not None:
                after(result, *args, **kwargs)
        return result

    setattr(owner, name, wrapper)
    try:
        yield
    finally:
        setattr(owner, name, original)
