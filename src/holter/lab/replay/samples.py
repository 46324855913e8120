"""Samples: which of a batch break the step, found by halving; and whether it is data or state."""

import math
from dataclasses import dataclass

import torch

from holter.lab.batches import size, take
from holter.lab.experiments import InapplicableError
from holter.lab.replay.window import Change, FailureWindow
from holter.lab.setup import Batch
from holter.lab.state import State

_MOST = 8  # samples that are named


@dataclass(frozen=True, slots=True)
class Triage:
    """The same batch on older weights, an older batch on these weights: do they fail, too?"""

    batch_on_older_weights: bool | None
    older_batch_on_these_weights: bool | None

    @property
    def is_data(self) -> bool:
        """Whether it is the batch, not the weights."""
        return bool(self.batch_on_older_weights) and self.older_batch_on_these_weights is False

    @property
    def says(self) -> str:
        """Data or state."""
        data, state = self.batch_on_older_weights, self.older_batch_on_these_weights
        if data and state is False:
            return "data: the batch fails on older weights too, and other batches do not"
        if data is False and state:
            return "state: other batches fail on these weights, and the batch did not on older ones"
        if data and state:
            return "both: the batch fails on older weights, and other batches on these"
        if data is False and state is False:
            return "the meeting of this batch with these weights: neither fails with another"
        return "unknown"


def triage(window: FailureWindow, ceiling: float) -> Triage:
    """Fail means: not finite, or a loss above `ceiling`."""
    steps = [each for each in window.steps if each.step <= window.onset]
    failing = steps[-1]
    older: bool | None = None
    if len(steps) > 1:
        window.restore()
        older = _fails(window.one(failing, Change("older weights")), ceiling)
    other: bool | None = None
    if len(steps) > 1:
        before = steps[-2]

        def batches(number: int, own: list[Batch]) -> list[Batch]:
            return window.batches(before) if number in window.bad else own

        played = window.play(Change("older batch", batches=batches))
        if played.steps and played.steps[-1] >= failing.step:
            other = _fails((played.losses[-1], played.norms[-1]), ceiling)
    return Triage(older, other)


def guilty(window: FailureWindow, ceiling: float) -> tuple[int, ...] | None:
    """The samples of the bad batch that break its step by themselves; None if none does."""
    steps = [each for each in window.steps if each.step <= window.onset]
    failing = steps[-1]
    if not failing.fetches and window.setup.prepare is None:
        return None
    if len(steps) > 1:
        window.play(until=steps[-2].step)
    else:
        window.restore()
    state = State(window.setup)
    batches = window.batches(failing)
    if len(batches) != 1:
        return None
    try:
        count = size(batches[0])
    except InapplicableError:
        return None

    def breaks(indices: list[int]) -> bool:
        state.restore()

        def some(_: int, own: list[Batch]) -> list[Batch]:
            return [take(own[0], torch.tensor(indices))]

        try:
            return _fails(window.one(failing, Change("a part", batches=some)), ceiling)
        except Exception:  # some steps cannot be made with fewer samples
            return False

    everyone = list(range(count))
    found: list[int] = []
    while len(found) < _MOST and everyone and breaks(everyone):
        one = _one(everyone, breaks)
        if one is None:
            break
        found.append(one)
        everyone.remove(one)
    state.restore()
    return tuple(found) or None


def _one(indices: list[int], breaks: object) -> int | None:
    """One sample that breaks the step alone, or None where it takes several together."""
    assert callable(breaks)
    while len(indices) > 1:
        half = len(indices) // 2
        parts = (indices[:half], indices[half:])
        broken = next((part for part in parts if breaks(part)), None)
        if broken is None:
            return None
        indices = broken
    return indices[0] if breaks(indices) else None


def _fails(measured: tuple[float, float], ceiling: float) -> bool:
    loss, norm = measured
    return not (math.isfinite(loss) and math.isfinite(norm)) or loss > ceiling
