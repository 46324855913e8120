"""Taps on checkpoints: what is read from a file, and what is loaded into a model."""

from typing import Any, Protocol

import torch
from torch import nn

from holter.watching.taps.tap import Call, Tap


class CheckpointListener(Protocol):
    """Hears of checkpoints."""

    def checkpoint_read(self, content: object) -> None:
        """`torch.load` returned something."""

    def weights_loaded(self, module: nn.Module, state: Any, result: Any) -> None:
        """`load_state_dict` of a module was given a state, and has returned a result."""


def tap_checkpoints(listener: CheckpointListener) -> list[Tap]:
    """Tap `torch.load` and `Module.load_state_dict`."""

    def read(original: Call) -> Call:
        def load(*args: Any, **kwargs: Any) -> Any:
            content = original(*args, **kwargs)
            listener.checkpoint_read(content)
            return content

        return load

    def fill(original: Call) -> Call:
        def load_state_dict(self: nn.Module, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, state_dict, *args, **kwargs)
            listener.weights_loaded(self, state_dict, result)
            return result

        return load_state_dict

    return [Tap(torch, "load", read), Tap(nn.Module, "load_state_dict", fill)]
