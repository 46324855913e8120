"""Gradient clipping: at another norm, or off."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from holter.lab.changes import Change
from holter.lab.setup import Setup
from holter.record.trials import TrialKind, TrialName


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


CLIPPING_OFF = Change(
    TrialName(TrialKind.CLIPPING_OFF),
    "Do not clip gradients.",
    partial(_clipped, None),
)
