"""The contexts of torch that a script's step runs in, entered again to repeat it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

Autocast = dict[str, tuple[bool, torch.dtype]]


def autocast_now() -> Autocast:
    """Whether autocast is on, and to what, for each kind of device there is."""
    kinds = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
    return {
        kind: (torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in kinds
    }


@contextmanager
def as_in_training(autocast: Autocast) -> Iterator[None]:
    """Gradients on, and autocast as it was: wherever the script is paused."""
    with ExitStack() as stack:
        if torch.is_inference_mode_enabled():
            stack.enter_context(torch.inference_mode(mode=False))
        stack.enter_context(torch.enable_grad())
        for kind, (enabled, dtype) in autocast.items():
            if enabled or torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, dtype=dtype, enabled=enabled))
        yield
