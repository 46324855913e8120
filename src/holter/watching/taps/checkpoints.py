"""Taps on checkpoints: what is read from a file, and what is loaded into a model."""

from typing import Any, Protocol

import torch
from torch import nn

from holter.watching.tap import Call, Tap


class CheckpointListener(Protocol):
    """Hears of checkpoints."""

    def checkpoint_read(self, content: object) -> None:
        """`torch.load` returned something."""

    def state_taken(self, module: nn.Module) -> None:
        """`state_dict` of a module was called."""

    def weights_loaded(
        self, module: nn.Module, state: Any, result: Any, *, assigned: bool = False
    ) -> None:
        """`load_state_dict` of a module was given a state, and has returned a result."""


def tap_checkpoints(listener: CheckpointListener) -> list[Tap]:
    """Tap `torch.load`, and `state_dict` and `load_state_dict` of modules."""

    def read(original: Call) -> Call:
        def load(*args: Any, **kwargs: Any) -> Any:
            content = original(*args, **kwargs)
            listener.checkpoint_read(content)
            return content

        return load

    def fill(original: Call) -> Call:
        def load_state_dict(self: nn.Module, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, state_dict, *args, **kwargs)
            assigned = bool(kwargs.get("assign", args[1] if len(args) > 1 else False))
            listener.weights_loaded(self, state_dict, result, assigned=assigned)
            return result

        return load_state_dict

    def take(original: Call) -> Call:
        def state_dict(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if not args and "prefix" not in kwargs:  # modules call it of their parts, too
                listener.state_taken(self)
            return original(self, *args, **kwargs)

        return state_dict

    return [
        Tap(torch, "load", read),
        Tap(nn.Module, "load_state_dict", fill),
        Tap(nn.Module, "state_dict", take),
    ]
