"""Interventions: the rungs of the ladder, each one thing done differently in a replay."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Optimizer
from torch.utils import _pytree as pytree

from holter.lab.replay.window import Change, FailureWindow
from holter.lab.setup import Batch, Setup
from holter.watching.blackbox.capture import Step
from holter.watching.blackbox.shadow import held_by
from holter.watching.taps import Tap

_DROPOUT = nn.modules.dropout._DropoutNd  # noqa: SLF001  (the base of all dropout modules)
_RAISED = 1.2  # times what it was, from which on a learning rate counts as raised
_HALF = (torch.float16, torch.bfloat16)


@dataclass(frozen=True, slots=True)
class Rung:
    """An intervention: the family it belongs to, and the change; or why it does not apply."""

    name: str
    family: str  # "rate", "clip", "precision", "batch", "skip", "state", "noise", "kernels"
    change: Change | None
    why_not: str = ""


def rungs(window: FailureWindow) -> list[Rung]:
    """All interventions, the mildest of each family first."""
    setup = window.setup
    used = Used.of(window)
    return [
        _rung("deterministic algorithms", "kernels", Change("", around=deterministic)),
        _when(used.attention, "math attention", "kernels", Change("", around=math_attention),
              "the step does not call scaled_dot_product_attention"),
        _when(used.compiled, "without compile", "kernels", Change("", around=without_compile),
              "nothing is compiled"),
        _when(used.reduced, "float32", "precision", Change("", around=lambda: in_float32(setup)),
              "everything is in float32 already"),
        _when(used.dropout, "without dropout", "noise", Change("", around=without_dropout),
              "there is no dropout"),
        _when(used.lower is not None, "learning rate of before", "rate",
              Change("", held=used.lower), "the learning rate does not rise in the window"),
        _rung("learning rate / 3", "rate", Change("", rate=1 / 3)),
        _rung("learning rate / 10", "rate", Change("", rate=0.1)),
        _rung("clip to 1.0", "clip", Change("", max_norm=1.0)),
        _when(used.adam, "larger epsilon", "state", Change("", prepared=_larger_epsilon),
              "the optimizer has no second moment"),
        _when(used.adam, "second moment reset", "state", _reset_second_moment(window),
              "the optimizer has no second moment"),
        _when(used.before is not None, "previous batch", "batch", _instead(window, used.before),
              "there is no step before it in the window"),
        _when(used.other is not None, "another batch", "batch", _instead(window, used.other),
              "there are too few steps in the window"),
        _rung("skip the step", "skip", Change("", skips=window.bad)),
    ]  # fmt: skip


def _rung(name: str, family: str, change: Change) -> Rung:
    change.name = name
    return Rung(name, family, change)


def _when(applies: bool, name: str, family: str, change: Change | None, why_not: str) -> Rung:
    if not applies or change is None:
        return Rung(name, family, None, why_not)
    return _rung(name, family, change)


@dataclass(frozen=True, slots=True)
class Used:
    """What a step makes use of, seen by running one."""

    attention: bool
    compiled: bool
    reduced: bool
    dropout: bool
    adam: bool
    before: int | None  # a step whose batch may stand in
    other: int | None
    lower: Step | None  # whose learning rates are lower than those of the failure

    @classmethod
    def of(cls, window: FailureWindow) -> "Used":
        """Run the first step of the window and look."""
        setup = window.setup
        seen: set[str] = set()

        def attention(original: Callable[..., Any]) -> Callable[..., Any]:
            def called(*args: Any, **kwargs: Any) -> Any:
                seen.add("attention")
                return original(*args, **kwargs)

            return called

        def autocast(original: Callable[..., Any]) -> Callable[..., Any]:
            def entered(self: Any) -> Any:
                if self._enabled:
                    seen.add("autocast")
                return original(self)

            return entered

        window.restore()
        taps = [
            Tap(functional, "scaled_dot_product_attention", attention),
            Tap(torch.amp.autocast_mode.autocast, "__enter__", autocast),
        ]
        try:
            window.one(window.steps[0], Change("a look"))
        finally:
            for tap in reversed(taps):
                tap.remove()
        modules = [m for model in setup.models.values() for m in model.modules()]
        steps = [each.step for each in window.steps if each.step < window.onset]
        return cls(
            attention="attention" in seen,
            compiled=any(_is_compiled(each) for each in modules),
            reduced="autocast" in seen or any(p.dtype in _HALF for p in _parameters(setup)),
            dropout=any(_drops(each) for each in modules),
            adam=any("exp_avg_sq" in s for o in setup.optimizers for s in o.state.values()),
            before=steps[-1] if steps else None,
            other=steps[len(steps) // 2] if len(steps) > 2 else None,
            lower=_lower(window),
        )


@contextlib.contextmanager
def deterministic() -> Iterator[None]:
    """Only kernels that give the same each time."""
    before = torch.are_deterministic_algorithms_enabled()
    warned = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warned)


@contextlib.contextmanager
def math_attention() -> Iterator[None]:
    """Attention by plain products and softmax, not by a fused kernel."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH):
        yield


@contextlib.contextmanager
def without_compile() -> Iterator[None]:
    """What is compiled runs as it is written."""
    with torch.compiler.set_stance("force_eager"):
        yield


@contextlib.contextmanager
def without_dropout() -> Iterator[None]:
    """Dropout, as a module or as a function, lets everything pass."""

    def passing(_: Callable[..., Any]) -> Callable[..., Any]:
        return lambda given, *_, **__: given

    def undropped(original: Callable[..., Any]) -> Callable[..., Any]:
        def attention(*args: Any, **kwargs: Any) -> Any:
            kwargs["dropout_p"] = 0.0
            return original(*args[:4], **kwargs)

        return attention

    names = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout")
    taps = [Tap(functional, name, passing) for name in names]
    taps.append(Tap(functional, "scaled_dot_product_attention", undropped))
    try:
        yield
    finally:
        for tap in reversed(taps):
            tap.remove()


@contextlib.contextmanager
def without_autocast() -> Iterator[None]:
    """Autocast, wherever the step enters it, does nothing."""

    def disabled(original: Callable[..., Any]) -> Callable[..., Any]:
        def made(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            self._enabled = False

        return made

    tap = Tap(torch.amp.autocast_mode.autocast, "__init__", disabled)
    try:
        with contextlib.ExitStack() as stack:
            for device in ("cpu", "cuda"):
                stack.enter_context(torch.autocast(device, enabled=False))
            yield
    finally:
        tap.remove()


@contextlib.contextmanager
def in_float32(setup: Setup) -> Iterator[None]:
    """Weights, optimizer states and what models are given in half precision are in float32."""
    held = [
        each
        for model in setup.models.values()
        for each in (*model.parameters(), *model.buffers())
        if each.dtype in _HALF
    ]
    kept = [(each, each.dtype) for each in held]
    for each in held:
        each.grad = None
        each.data = each.data.float()
    for optimizer in setup.optimizers:
        for state in optimizer.state.values():
            state.update({name: _wide(value) for name, value in state.items()})
    hooks = [
        model.register_forward_pre_hook(
            lambda _, args, kwargs: pytree.tree_map(_wide, (args, kwargs)), with_kwargs=True
        )
        for model in setup.models.values()
        if held
    ]
    try:
        with without_autocast():
            yield
    finally:
        for hook in hooks:
            hook.remove()
        for each, dtype in kept:
            each.grad = None
            each.data = each.data.to(dtype)


def _wide(value: Any) -> Any:
    return value.float() if isinstance(value, Tensor) and value.dtype in _HALF else value


def _larger_epsilon(setup: Setup) -> None:
    for optimizer in setup.optimizers:
        for group in optimizer.param_groups:
            if "eps" in group:
                group["eps"] = max(1e-4, 1e3 * group["eps"])


def _reset_second_moment(window: FailureWindow) -> Change:
    """Right before it goes wrong, Adam forgets how large gradients were."""

    def before(setup: Setup, step: int) -> None:
        if step == window.onset:
            for optimizer in setup.optimizers:
                _forget(optimizer)

    return Change("", before=before)


def _forget(optimizer: Optimizer) -> None:
    for parameter in held_by(optimizer):
        state = optimizer.state.get(parameter, {})
        for name in ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"):
            if name in state:
                state[name].zero_()
        if isinstance(state.get("step"), Tensor):
            state["step"].zero_()
        elif "step" in state:
            state["step"] = 0


def _instead(window: FailureWindow, other: int | None) -> Change | None:
    """The steps that went wrong are given the batch of another one."""
    if other is None:
        return None
    step = next(each for each in window.steps if each.step == other)

    def batches(number: int, own: list[Batch]) -> list[Batch]:
        return window.batches(step) if number in window.bad else own

    return Change("", batches=batches)


def _lower(window: FailureWindow) -> Step | None:
    """The first step of the window, if a schedule has raised a learning rate since."""
    first = window.steps[0]
    raised = any(
        now > _RAISED * before
        for step in window.steps
        if step.step <= window.failing
        for rates, firsts in zip(step.rates, first.rates, strict=False)
        for now, before in zip(rates, firsts, strict=False)
    )
    return first if raised else None


def _parameters(setup: Setup) -> Sequence[Tensor]:
    return [each for model in setup.models.values() for each in model.parameters()]


def _drops(module: nn.Module) -> bool:
    if isinstance(module, _DROPOUT):
        return module.p > 0 and module.training
    if isinstance(module, nn.RNNBase | nn.MultiheadAttention):
        return module.dropout > 0
    return False


def _is_compiled(module: nn.Module) -> bool:
    return module._compiled_call_impl is not None or type(module).__name__ == "OptimizedModule"  # noqa: SLF001
