"""Twins: copies of a model that the script leaves, and how far each has followed it."""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from holter.record.events import CopyCompared

_ELEMENTS = 64  # of each parameter that are kept from the start

Sketch = list[Tensor]


def sketch_of(model: nn.Module) -> Sketch:
    """Return some elements of each parameter of floating point, as they are now.

    Sharded, sparse and empty ones are left out: what they hold is not here.
    """
    return [_some(each).clone() for each in model.parameters() if _is_plain(each)]


def _is_plain(parameter: Tensor) -> bool:
    is_dense = parameter.layout is torch.strided and not parameter.is_meta
    is_float = parameter.is_floating_point() and parameter.numel() > 0
    return is_dense and is_float and type(parameter.detach()) is Tensor


def _some(parameter: Tensor) -> Tensor:
    flat = parameter.detach().reshape(-1)
    return flat[:: max(len(flat) // _ELEMENTS, 1)][:_ELEMENTS].to(torch.float32)


def compared(
    model: nn.Module, initial: Sketch, copies: Iterable[nn.Module]
) -> Iterator[CopyCompared]:
    """Compare copies of a model with it, and with the weights that it began with."""
    now = sketch_of(model)
    if [each.shape for each in now] != [each.shape for each in initial]:
        return  # layers were added or frozen in another form
    way = _distance(now, initial)
    if not way > 0:
        return
    for copy in copies:
        own = sketch_of(copy)
        if [each.shape for each in own] == [each.shape for each in now]:
            written = min((each._version for each in copy.parameters()), default=0)  # noqa: SLF001
            yield CopyCompared(
                type(model).__name__,
                behind=_distance(own, now) / way,
                moved=_distance(own, initial) / way,
                written=written,
                unset_norms=_unset_norms(model, copy),
            )


def _unset_norms(model: nn.Module, copy: nn.Module) -> int:
    """Return how many batch norms of a copy use the statistics that they were created with."""
    pairs = zip(model.modules(), copy.modules(), strict=False)
    return sum(
        isinstance(own, _BatchNorm)
        and isinstance(other, _BatchNorm)
        and not other.training
        and _is_unset(other)
        and not _is_unset(own)
        for own, other in pairs
    )


def _is_unset(norm: _BatchNorm) -> bool:
    mean, variance = norm.running_mean, norm.running_var
    if mean is None or variance is None or mean.is_meta:
        return False
    return bool((mean == 0).all()) and bool((variance == 1).all())


def _distance(one: Sketch, other: Sketch) -> float:
    squares = [(a - b.to(a.device)).square().sum().cpu() for a, b in zip(one, other, strict=True)]
    return float(torch.stack(squares).sum().sqrt()) if squares else 0.0
