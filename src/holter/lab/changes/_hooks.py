"""Where tapped changes act: around optimizer steps, and around calls of whole models."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from holter.lab.changes import Altered
from holter.watching.taps import Tap

Group = dict[str, Any]
Settings = Callable[[Optimizer, Group], Mapping[str, Any]]  # of a group while its optimizer steps
Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@contextmanager
def around_steps(
    *,
    before: Callable[[Optimizer], None] | None = None,
    after: Callable[[Optimizer], None] | None = None,
) -> Iterator[None]:
    """Call functions before and after each step of every optimizer."""
    hooks = []
    if before is not None:
        hooks.append(register_optimizer_step_pre_hook(_with_optimizer(before)))
    if after is not None:
        hooks.append(register_optimizer_step_post_hook(_with_optimizer(after)))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _with_optimizer(function: Callable[[Optimizer], None]) -> Callable[..., None]:
    return lambda optimizer, *_: function(optimizer)


@contextmanager
def settings_in_steps(settings: Settings, altered: Altered) -> Iterator[None]:
    """Replace settings of parameter groups only while `optimizer.step()` runs: nobody sees them."""
    own: dict[Optimizer, list[dict[str, Any]]] = {}

    def before(optimizer: Optimizer) -> None:
        own[optimizer] = []
        for group in optimizer.param_groups:
            new = {k: v for k, v in settings(optimizer, group).items() if k in group}
            kept = {name: _value(group[name]) for name in new}
            own[optimizer].append(kept)
            if new != kept:
                altered()
                put(group, new)

    def after(optimizer: Optimizer) -> None:
        for group, kept in zip(optimizer.param_groups, own.pop(optimizer, ()), strict=False):
            put(group, kept)

    try:
        with around_steps(before=before, after=after):
            yield
    finally:
        for optimizer in list(own):  # whose step has raised
            after(optimizer)


def put(group: Group, settings: Mapping[str, Any]) -> None:
    """Set settings of a group, in place if one is a tensor, which a compiled step may hold."""
    for name, value in settings.items():
        if isinstance(group[name], Tensor):
            group[name].fill_(value)
        elif group[name] != value:
            group[name] = value


def _value(setting: Any) -> Any:
    return float(setting) if isinstance(setting, Tensor) else setting


@contextmanager
def around_models(
    enter: Callable[[nn.Module], AbstractContextManager[Any]] | None = None,
    *,
    given: Callable[[nn.Module, Arguments], Arguments] | None = None,
    call: Callable[[nn.Module, Callable[..., Any], Arguments], Any] | None = None,
) -> Iterator[None]:
    """Act on each outermost call of a module that has parameters.

    The call is made inside `enter`, with the arguments that `given` returns, by `call`.
    """
    inside = False

    def around(original: Callable[..., Any]) -> Callable[..., Any]:
        def called(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            if inside or next(self.parameters(), None) is None:
                return original(self, *args, **kwargs)
            inside = True
            try:
                with enter(self) if enter is not None else nullcontext():
                    if given is not None:
                        args, kwargs = given(self, (args, kwargs))
                    if call is not None:
                        return call(self, original, (args, kwargs))
                    return original(self, *args, **kwargs)
            finally:
                inside = False

        return called

    tap = Tap(nn.Module, "__call__", around)
    try:
        yield
    finally:
        tap.remove()


@contextmanager
def modes_set(modules: Iterable[nn.Module], *, training: bool, altered: Altered) -> Iterator[None]:
    """Set the mode of modules inside."""
    others = [module for module in modules if module.training is not training]
    if others:
        altered()
    for module in others:
        module.training = training
    try:
        yield
    finally:
        for module in others:
            module.training = not training


def is_training() -> bool:
    """Whether a forward pass now is one of training, as far as autograd tells."""
    return torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
