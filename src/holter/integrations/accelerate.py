"""Accelerate: `with holter.integrations.accelerate.watch(accelerator, model, optimizer): ...`."""

from pathlib import Path
from typing import Any

from torch import nn

from holter.integrations._session import unwrapped
from holter.watching.watch import Watch
from holter.watching.watch import watch as watch_plain


def watch(
    accelerator: Any,
    model: nn.Module,
    *optimizers: Any,
    out: str | Path | None = None,
    **options: Any,
) -> Watch:
    """Record what `accelerator.prepare()` returned; options are those of `holter.watch`."""
    inner = accelerator.unwrap_model(model)
    return watch_plain(inner, [unwrapped(each) for each in optimizers], out, **options)
