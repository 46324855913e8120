"""Start: a training as it is before its first update, kept to be put back."""

import gc
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from holter.lab.setup import LossPhase, Setup
from holter.lab.state import State
from holter.scripts.discovery import live_models


class Start:
    """Looks at the forward passes before the first backward; then everything is kept."""

    def __init__(self) -> None:
        self.modules: list[nn.Module] = []  # those that are part of no other
        self.optimizers: list[Optimizer] = []
        self.schedulers: list[LRScheduler] = []
        self._state: State | None = None
        self._buffers: dict[int, tuple[nn.Module, dict[str, Tensor]]] = {}
        # A forward pass changes running statistics: they are kept before it.
        self._looking: Any = register_module_forward_pre_hook(self._before_forward)

    @property
    def kept(self) -> bool:
        """Whether the first backward has come."""
        return self._state is not None

    def keep(self) -> None:
        """The first backward is about to begin: nothing was updated so far."""
        self.stop_looking()
        self.modules = live_models()
        found = _living()
        self.optimizers = [each for each in found if isinstance(each, Optimizer)]
        self.schedulers = [each for each in found if isinstance(each, LRScheduler)]
        scalers = [each for each in found if isinstance(each, GradScaler)]
        whole = Setup(
            models={str(place): each for place, each in enumerate(self.modules)},
            phases=(LossPhase(_no_loss, tuple(self.optimizers)),),
            train=(),
            schedulers=tuple(self.schedulers),
            others=tuple(scalers),
        )
        self._state = State(whole)

    def keep_anew(self) -> None:
        """Another training is about to begin, after one that is over."""
        self._buffers.clear()
        self.keep()

    @property
    def is_outdated(self) -> bool:
        """Whether there are optimizers that were not there."""
        known = {id(optimizer) for optimizer in self.optimizers}
        return any(id(each) not in known for each in _living() if isinstance(each, Optimizer))

    def parameters(self) -> list[Tensor]:
        """Those of all modules, and what optimizers hold besides."""
        held = (
            p
            for optimizer in self.optimizers
            for group in optimizer.param_groups
            for p in group["params"]
        )
        own = (p for module in self.modules for p in module.parameters())
        return list({id(each): each for each in (*own, *held)}.values())

    def restore(self) -> None:
        """Put everything back as it was before the first update."""
        assert self._state is not None
        self._state.restore()
        with torch.no_grad():
            for module, buffers in self._buffers.values():
                for name, value in buffers.items():
                    held = vars(module)["_buffers"].get(name)
                    if held is not None and held.shape == value.shape:
                        held.copy_(value)

    def stop_looking(self) -> None:
        """Look at forward passes no longer; safe to call twice."""
        if self._looking is not None:
            self._looking.remove()
            self._looking = None

    def _before_forward(self, module: nn.Module, _: Any) -> None:
        own = vars(module)["_buffers"]
        if own and module.training and torch.is_grad_enabled():
            kept = {name: each.detach().clone() for name, each in own.items() if each is not None}
            self._buffers[id(module)] = (module, kept)


_KEEPERS = (Optimizer, LRScheduler, GradScaler)


def _living() -> list[Any]:
    return [each for each in gc.get_objects() if issubclass(type(each), _KEEPERS)]


def _no_loss(_: object) -> Tensor:
    raise AssertionError("this setup is only kept, never run")
