"""A few samples of a training: which, how their loss looks, and the least it may be."""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import torch

from holter.diagnosis.facts.fits import Aim
from holter.lab.batches import cloned, opaque, take, tensors
from holter.lab.changes.dropout import dropout_off
from holter.lab.experiments._overfitting.floors import Floor, floor_of
from holter.lab.experiments._overfitting.free_floors import free_floor
from holter.lab.experiments._overfitting.passes import Pass, forward
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Batch, Setup
from holter.lab.state import State

_REPEATS = 4  # passes that show whether random numbers are drawn
_MANY = 16  # passes by which noise in inputs and targets is measured
_OTHERS = 4  # batches that are looked at where all targets of the first are the same
_STABLE = 0.05  # share of the way by which a floor may move while the model learns


@dataclass(frozen=True, slots=True)
class Few:
    """A few samples, what forward passes show of them, and the least loss they may have."""

    batch: Batch
    count: int
    passes: tuple[Pass, ...]
    quiet: tuple[Pass, ...]  # without dropout
    floor: Floor | str  # or why it is not known

    @property
    def start(self) -> float:
        """The loss before anything is learned."""
        return float(np.mean([each.loss for each in self.passes]))

    @property
    def noise(self) -> float:
        """How much the loss differs from pass to pass."""
        return _spread(self.passes)

    @property
    def quiet_noise(self) -> float:
        """The same without dropout."""
        return _spread(self.quiet)

    @property
    def spread(self) -> float:
        """How much predictions differ from sample to sample."""
        return self.quiet[0].spread(self.count)

    @property
    def drops(self) -> bool:
        """Whether dropout changes the loss."""
        return self.noise > 2 * self.quiet_noise

    @property
    def aim(self) -> Aim:
        """From the best constant prediction to the floor, as far as they are known."""
        if isinstance(self.floor, str):
            return Aim.of(self.start, None, None, self.noise)
        return Aim.of(self.start, self.floor.least, self.floor.constant, self.noise)


def few_samples(setup: Setup, state: State, samples: int) -> Few:
    """Some samples of the first batch in which not all have the same answer."""
    first: Few | None = None
    for batch in islice(setup.train, _OTHERS):
        found = look(setup, state, *_cut(setup, state, cloned(batch), samples))
        if not _has_one_answer(found.floor):
            return found
        first = first or found
    if first is None:
        raise InapplicableError("there are no training batches")
    return first


def look(setup: Setup, state: State, batch: Batch, count: int) -> Few:
    """Forward passes over these samples; the training is as before afterwards."""
    state.restore()
    passes = [forward(setup, batch) for _ in range(_REPEATS)]
    state.restore()
    quiet = _quiet_passes(setup, batch, 2)
    if _spread(quiet):
        quiet = _quiet_passes(setup, batch, _MANY)
    state.restore()
    return Few(batch, count, tuple(passes), tuple(quiet), floor_of(quiet, count))


def with_free_floor(setup: Setup, state: State, few: Few) -> Few:
    """The same with a floor that is searched for, where it could not be computed."""
    if isinstance(few.floor, Floor):
        return few
    least = free_floor(setup, few.batch)
    constant = free_floor(setup, few.batch, shared=few.count) if least is not None else None
    state.restore()
    if least is None:
        return few
    found = Floor(least, few.start if constant is None else constant, few.floor, exact=False)
    return replace(few, floor=found)


def confirmed(setup: Setup, few: Few) -> Few:
    """The same without its floor, where that has moved with what the model has learned."""
    if isinstance(few.floor, str) or not few.floor.exact:
        return few
    passes = _quiet_passes(setup, few.batch, len(few.quiet))
    if not np.isfinite([each.loss for each in passes]).all():  # it tells nothing
        return few
    now = floor_of(passes, few.count)
    if isinstance(now, str):
        return replace(few, floor=now)
    way = max(few.floor.constant - few.floor.least, abs(few.start - few.floor.least))
    if abs(now.least - few.floor.least) > _STABLE * way:
        return replace(few, floor="the floor moves while the model learns")
    return few


def _cut(setup: Setup, state: State, batch: Batch, samples: int) -> tuple[Batch, int]:
    """Samples spread over a batch; the whole of it where it cannot be cut."""
    held = [tensor for tensor in tensors(batch) if tensor.dim()]
    if not held:
        return batch, 0
    (count, most), *others = Counter(len(each) for each in held).most_common(2)
    if others and others[0][1] == most:  # time first, it may be: targets come last
        return batch, len(held[-1])
    if samples >= count or opaque(batch):
        return batch, count
    few = take(batch, torch.linspace(0, count - 1, samples).round().long())
    try:
        forward(setup, few)
    except Exception:  # whatever the step makes of it
        return batch, count
    finally:
        state.restore()
    return few, samples


def _quiet_passes(setup: Setup, batch: Batch, count: int) -> list[Pass]:
    """Passes without dropout, with the same random numbers each time they are made."""
    torch.manual_seed(0)
    with dropout_off(setup):
        return [forward(setup, batch) for _ in range(count)]


def _has_one_answer(floor: Floor | str) -> bool:
    return isinstance(floor, Floor) and floor.constant - floor.least < 1e-6


def _spread(passes: tuple[Pass, ...] | list[Pass]) -> float:
    return float(np.std([each.loss for each in passes]))
