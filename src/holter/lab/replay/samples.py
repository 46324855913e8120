"""Data or state: the failing batch on older weights, and which of its samples fail alone."""

from collections.abc import Callable

import torch

from holter.diagnosis.facts.replays import Triage
from holter.lab.batches import size, take
from holter.lab.inapplicable import InapplicableError
from holter.lab.replay.failing import is_failure
from holter.lab.replay.planning import instead
from holter.lab.replay.window import FailureWindow, WindowEdit
from holter.lab.setup import Batch
from holter.lab.state import State
from holter.record.band import Band

_MOST = 8  # samples that are named


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
    return Triage(older, other)


def guilty_samples(window: FailureWindow, band: Band) -> tuple[int, ...]:
    """Return samples of the failing batch that fail by themselves, found by halving."""
    failing = window.at(window.onset)
    if not window.fetches(failing) and window.setup.prepare is None:
        return ()
    window.to_step(failing)
    state = State(window.setup)
    batches = window.batches(failing)
    if len(batches) != 1:
        return ()
    try:
        count = size(batches[0])
    except InapplicableError:
        return ()

    def fails(indices: list[int]) -> bool:
        state.restore()

        def some(_: int, own: list[Batch]) -> list[Batch]:
            return [take(own[0], torch.tensor(indices))]

        try:
            return is_failure(window.one(failing, WindowEdit(batches=some)), band)
        except Exception:  # some steps cannot be made with fewer samples
            return False

    candidates = list(range(count))
    guilty: list[int] = []
    while len(guilty) < _MOST and candidates and fails(candidates):
        sample = _one(candidates, fails)
        if sample is None:
            break
        guilty.append(sample)
        candidates.remove(sample)
    state.restore()
    return tuple(guilty)


def _one(indices: list[int], fails: Callable[[list[int]], bool]) -> int | None:
    """Return one sample that fails alone, or None if it takes several together."""
    while len(indices) > 1:
        half = len(indices) // 2
        parts = (indices[:half], indices[half:])
        failing = next((part for part in parts if fails(part)), None)
        if failing is None:
            return None
        indices = failing
    return indices[0] if fails(indices) else None
