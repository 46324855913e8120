"""Taps on process groups: when one is made, and when uneven inputs are joined."""

from typing import Any, Protocol

import torch

from holter.watching.tap import Call, Tap


class GroupListener(Protocol):
    """Hears of process groups."""

    def group_made(self) -> None:
        """`init_process_group` has returned."""

    def inputs_joined(self) -> None:
        """`Join` is entered."""


def tap_groups(listener: GroupListener) -> list[Tap]:
    """Tap `torch.distributed.init_process_group` and `Join.__enter__`."""
    distributed: Any = torch.distributed
    if not distributed.is_available():
        return []
    from torch.distributed.algorithms.join import Join

    def initialise(original: Call) -> Call:
        def init_process_group(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            listener.group_made()
            return result

        return init_process_group

    def enter(original: Call) -> Call:
        def entered(self: Join) -> Any:
            listener.inputs_joined()
            return original(self)

        return entered

    return [Tap(distributed, "init_process_group", initialise), Tap(Join, "__enter__", enter)]
