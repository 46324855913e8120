"""Running statistics that a training leaves, beside those of one of its batches."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from holter.record.events import StatisticsCompared

_TINY = 1e-12
_FAR = 10.0  # batch variances: a channel that is almost constant does not decide for the others


def measured(
    model: nn.Module, arguments: tuple[tuple[Any, ...], dict[str, Any]]
) -> Iterator[StatisticsCompared]:
    """Call a model once, and compare the batch norm that is the furthest from this batch.

    The call updates running statistics: they have to be put back.
    """
    norms = {name: each for name, each in model.named_modules() if _is_running(each)}
    found: dict[str, StatisticsCompared] = {}

    def listener(name: str) -> Any:
        def look(module: Any, given: tuple[Tensor, ...]) -> None:
            if name not in found and given and given[0].numel() > given[0].shape[1]:
                found[name] = _compared(name, len(norms), module, given[0].detach())

        return look

    handles = [each.register_forward_pre_hook(listener(name)) for name, each in norms.items()]
    try:
        with torch.no_grad():
            model(*arguments[0], **arguments[1])
    finally:
        for handle in handles:
            handle.remove()
    if found:
        yield max(found.values(), key=lambda each: (each.variance - 1) * each.left)


def _is_running(module: nn.Module) -> bool:
    """Whether a module is a batch norm that updates running statistics."""
    return (
        isinstance(module, _BatchNorm)
        and module.training
        and module.running_mean is not None
        and module.num_batches_tracked is not None
        and not module.running_mean.is_meta
    )


def _compared(name: str, norms: int, module: Any, batch: Tensor) -> StatisticsCompared:
    values = batch.double().transpose(0, 1).flatten(1)
    mean, variance = values.mean(1), values.var(1)
    running = module.running_mean.double(), module.running_var.double()
    left = _left(module)
    unit = (variance + module.eps).sqrt()
    # what they would be if the batch's statistics had been seen in every update
    expected = (1 - left) * mean, (1 - left) * variance + left
    away = torch.cat([(running[0] - mean) / unit, (running[1] - variance) / unit**2]).abs()
    rest = torch.cat([(running[0] - expected[0]) / unit, (running[1] - expected[1]) / unit**2])
    factor = ((running[1] + module.eps) / (variance + module.eps)).log().abs().median().exp()
    return StatisticsCompared(
        name,
        norms,
        updates=int(module.num_batches_tracked),
        left=left,
        momentum=module.momentum,
        mean=float(away[: len(mean)].median()),
        variance=float(factor),
        unexplained=float(rest.abs().clamp(max=_FAR).sum() / (away.clamp(max=_FAR).sum() + _TINY)),
    )


def _left(module: Any) -> float:
    """Return the share of the initial values that updates with this momentum leave."""
    updates = int(module.num_batches_tracked)
    if module.momentum is None:  # the mean of all
        return float(updates == 0)
    return float((1 - module.momentum) ** updates)
