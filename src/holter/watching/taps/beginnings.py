"""Taps on what a script does first in a new step: fetch a batch, call a model, compute a loss."""

from collections.abc import Callable
from typing import Any

from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, dataloader

from holter.watching.tap import Call, Tap
from holter.watching.taps.losses import LOSS_FUNCTIONS


def tap_beginnings(prompt: Callable[[], None], is_model: Callable[[nn.Module], bool]) -> list[Tap]:
    """Call `prompt` before loaders, whole models, `train()` and loss functions are called."""

    def around(original: Call) -> Call:
        def prompted(*args: Any, **kwargs: Any) -> Any:
            prompt()
            return original(*args, **kwargs)

        return prompted

    def call(original: Call) -> Call:
        def called(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if is_model(self):
                prompt()
            return original(self, *args, **kwargs)

        return called

    iterator = dataloader._BaseDataLoaderIter  # noqa: SLF001  (every loader's iterator)
    losses = [name for name in LOSS_FUNCTIONS if name in vars(functional)]
    return [
        Tap(DataLoader, "__iter__", around),
        Tap(iterator, "__next__", around),
        Tap(nn.Module, "train", around),
        Tap(nn.Module, "__call__", call),
        *(Tap(functional, name, around) for name in losses),
    ]
