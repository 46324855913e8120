"""Gradient clipping: at another norm, at the outliers, or off."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import nn
from torch.nn.utils import clip_grad
from torch.optim import Optimizer

from holter.lab.changes import Altered, Change, TappedChange
from holter.lab.changes._hooks import around_steps
from holter.lab.setup import Setup
from holter.record.trials import TrialKind, TrialName
from holter.watching.blackbox.shadow import held_by
from holter.watching.taps import Tap

_OUTLIERS = 90  # percentile above which a norm is one
_MEMORY, _FEWEST = 200, 5  # norms that are remembered, and that are needed


def clip_to(max_norm: float) -> Change:
    """Clip gradients to a norm, in place of the training's own clipping."""
    return Change(
        TrialName(TrialKind.CLIP, f"{max_norm:.3g}"),
        f"Clip gradients to a norm of {max_norm:.3g}.",
        partial(_clipped, max_norm),
    )


@contextmanager
def _clipped(max_norm: float | None, setup: Setup) -> Iterator[Setup]:
    yield replace(setup, phases=tuple(replace(phase, max_norm=max_norm) for phase in setup.phases))


def clipped_at_steps(max_norm: float) -> TappedChange:
    """Clip gradients to a norm right before each update, whatever the training does itself."""

    @contextmanager
    def entered(altered: Altered) -> Iterator[None]:
        def clip(optimizer: Optimizer) -> None:
            held = [p for p in held_by(optimizer) if p.grad is not None]
            if held and not float(nn.utils.clip_grad_norm_(held, max_norm)) <= max_norm:
                altered()

        with around_steps(before=clip):
            yield

    return TappedChange(
        TrialName(TrialKind.CLIP, f"{max_norm:.3g}"),
        f"Clip gradients to a norm of {max_norm:.3g} right before each update.",
        entered,
    )


@contextmanager
def _unclipped(altered: Altered) -> Iterator[None]:
    """Let the functions that clip do nothing; `clip_grad_norm_` still returns the norm."""

    def around(_: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *_, **__: altered()

    taps = [
        Tap(clip_grad, "_clip_grads_with_norm_", around),
        Tap(nn.utils, "clip_grads_with_norm_", around),
        Tap(nn.utils, "clip_grad_value_", around),
    ]
    try:
        yield
    finally:
        for tap in reversed(taps):
            tap.remove()


CLIPPING_OFF = TappedChange(TrialName(TrialKind.CLIPPING_OFF), "Do not clip gradients.", _unclipped)


@contextmanager
def _outliers_clipped(altered: Altered) -> Iterator[None]:
    norms: WeakKeyDictionary[Optimizer, deque[float]] = WeakKeyDictionary()

    def clip(optimizer: Optimizer) -> None:
        gradients = [p.grad for p in held_by(optimizer) if p.grad is not None]
        norm = float(torch.nn.utils.get_total_norm(gradients)) if gradients else 0.0
        known = norms.setdefault(optimizer, deque(maxlen=_MEMORY))
        limit = float(np.percentile(known, _OUTLIERS)) if len(known) >= _FEWEST else norm
        if np.isfinite(norm):
            known.append(norm)
        if not norm <= limit:  # NaN is an outlier, too
            altered()
            for gradient in gradients:
                gradient.mul_(limit / norm) if np.isfinite(norm) else gradient.zero_()

    with around_steps(before=clip):
        yield


CLIP_OUTLIERS = TappedChange(
    TrialName(TrialKind.CLIP_OUTLIERS),
    f"Clip each gradient to the {_OUTLIERS}th percentile of the norms before it.",
    _outliers_clipped,
)
