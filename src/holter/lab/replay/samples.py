"""Data or state: the failing batch on older weights, and which of its samples fail alone."""

import math
import time
from collections.abc import Callable, Sequence
from functools import partial

import torch

from holter.diagnosis.facts.replays import Triage
from holter.lab.batches import size, take, tensors
from holter.lab.inapplicable import InapplicableError
from holter.lab.replay.failing import is_failure
from holter.lab.replay.planning import instead
from holter.lab.replay.window import FailureWindow, WindowEdit
from holter.lab.setup import Batch
from holter.lab.state import State
from holter.record.band import Band
from holter.record.errors import HolterError
from holter.watching.blackbox.capture import Step

_COMPARED = 8  # batches before the failing one
_OUTLYING = 10.0  # times the largest element of those batches
_FEW = 8  # samples that are found by halving
_SECONDS = 2.0  # in which others are looked for one by one


def triage(window: FailureWindow, band: Band) -> Triage:
    """Run the failing batch on older weights, and an older batch on the failing weights."""
    steps = [step for step in window.like(window.at(window.onset)) if step.step <= window.onset]
    if len(steps) < 2:
        return Triage(None, None)
    *_, before, failing = steps
    window.restore()
    older = is_failure(window.one(failing), band)
    played = window.play(edit=instead(window, before))
    other: bool | None = None
    if played.steps and played.steps[-1] >= failing.step:
        other = is_failure(played.outcomes[-1], band)
    return Triage(older, other, outlies=_outlies(window, failing, steps[:-1]))


def _outlies(window: FailureWindow, failing: Step, before: Sequence[Step]) -> bool | None:
    """Whether values of a batch are not finite, or far larger than in any batch before."""
    try:
        own = _sizes(window.batches(failing))
        others = [_sizes(window.batches(step)) for step in before[-_COMPARED:]]
    except (HolterError, RuntimeError, TypeError, ValueError):
        return None
    if any(len(each) != len(own) for each in others):
        return None
    usual = [max(column) for column in zip(*others, strict=True)]
    pairs = zip(own, usual, strict=True)
    return any(not math.isfinite(size) or size > _OUTLYING * most for size, most in pairs)


def _sizes(batches: Sequence[Batch]) -> list[float]:
    """Return the largest element of each tensor of a step, by size."""
    held = [each for batch in batches for each in tensors(batch) if each.numel()]
    return [float(each.detach().abs().max()) for each in held]


def guilty_samples(
    window: FailureWindow, band: Band, place: int | None = None, suspects: Sequence[int] = ()
) -> tuple[int, ...]:
    """Return samples of the failing batch that fail by themselves.

    Of several batches that make the step it is the one at `place`, or the first that fails alone.
    `suspects` are returned if the step does not fail without them; else samples are found by
    halving, since most do not fail because of the others.
    """
    failing = window.at(window.onset)
    if not window.fetches(failing) and window.setup.prepare is None:
        return ()
    window.to_step(failing)
    state = State(window.setup)
    batches = window.batches(failing)

    def fails(indices: Sequence[int], at: int) -> bool:
        state.restore()

        def some(_: int, own: list[Batch]) -> list[Batch]:
            kept = [take(own[at], torch.tensor(indices))] if indices else []
            return [*own[:at], *kept, *own[at + 1 :]]

        try:
            return is_failure(window.one(failing, WindowEdit(batches=some)), band)
        except Exception:  # some steps cannot be made with fewer samples
            return False

    try:
        at = _failing_batch(len(batches), fails) if place is None else place
        count = size(batches[at])
    except (InapplicableError, IndexError):
        return ()
    others = [sample for sample in range(count) if sample not in set(suspects)]
    if suspects and (len(others) == 0 or not fails(others, at)):
        state.restore()
        return tuple(suspects)
    guilty = _halved(list(range(count)), partial(fails, at=at))
    state.restore()
    return tuple(sorted(guilty))


def _failing_batch(count: int, fails: Callable[[Sequence[int], int], bool]) -> int:
    """Return the batch without which the step does not fail, the first if there is none."""
    if count == 1:
        return 0
    return next((at for at in range(count) if not fails((), at)), 0)


def _halved(candidates: list[int], fails: Callable[[Sequence[int]], bool]) -> list[int]:
    """Return the samples that fail by themselves: a few by halving, the rest one by one."""
    guilty: list[int] = []
    while len(guilty) < _FEW and candidates and fails(candidates):
        sample = _one(candidates, fails)
        if sample is None:
            return guilty
        guilty.append(sample)
        candidates.remove(sample)
    until = time.perf_counter() + _SECONDS
    if len(guilty) == _FEW and candidates and fails(candidates):
        guilty += [each for each in candidates if time.perf_counter() < until and fails([each])]
    return guilty


def _one(indices: list[int], fails: Callable[[Sequence[int]], bool]) -> int | None:
    """Return one sample that fails alone, or None if it takes several together."""
    while len(indices) > 1:
        half = len(indices) // 2
        parts = (indices[:half], indices[half:])
        failing = next((part for part in parts if fails(part)), None)
        if failing is None:
            return None
        indices = failing
    return indices[0] if fails(indices) else None
