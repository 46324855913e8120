"""Copies of a model among the objects of the process: moving averages, kept best weights."""

import gc
from collections.abc import Iterable

from torch import nn

_COPIES = 8  # that are looked at


def copies_of(model: nn.Module) -> list[nn.Module]:
    """Return the other modules of that class with parameters of the same shapes, or some of them.

    It looks at all objects there are: to be asked seldom.
    """
    shapes = [each.shape for each in model.parameters()]
    kind = type(model)
    if kind.__module__.startswith("torch.") and kind is not nn.Sequential:
        return []  # a layer, not a model
    inside = set(map(id, model.modules()))
    return [
        each
        for each in gc.get_objects()
        if type(each) is kind
        and id(each) not in inside
        and [p.shape for p in each.parameters()] == shapes
    ][:_COPIES]


def counterparts(
    model: nn.Module, copy: nn.Module, modules: Iterable[nn.Module]
) -> tuple[nn.Module, ...]:
    """Return the modules of a copy that stand where some modules of a model do."""
    wanted = set(map(id, modules))
    pairs = zip(model.modules(), copy.modules(), strict=False)
    return tuple(other for own, other in pairs if id(own) in wanted)
