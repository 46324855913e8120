"""A captured failure put back into a training, to be run again, unchanged or with changes."""

import contextlib
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor, nn
from torch.optim import Optimizer

from holter.lab.batches import cloned
from holter.lab.birth.owners import Owner, owned
from holter.lab.birth.values import extent
from holter.lab.changes import Change
from holter.lab.changes.learning_rate import set_rate
from holter.lab.randomness import RandomState
from holter.lab.replay.loading import CapturedState
from holter.lab.setup import Batch, Setup
from holter.lab.state import State
from holter.record import Run
from holter.record.events import WindowMeasure
from holter.record.signals import AMP_SCALE, LOSS
from holter.watching.blackbox.capture import Capture, Fetched, Step
from holter.watching.blackbox.shadow import held_by


class StepOutcome(NamedTuple):
    """What one step of a replay gave."""

    loss: float
    norm: float  # of the gradient before the update
    spoiled: bool  # a weight, a buffer or a moment is not finite after the update

    @property
    def is_finite(self) -> bool:
        """Whether everything is finite: loss, gradient, and what the update left."""
        return math.isfinite(self.loss) and math.isfinite(self.norm) and not self.spoiled


@dataclass(frozen=True, slots=True)
class ReplayTrial:
    """One pass through a window: a loss and a gradient norm for each step."""

    steps: tuple[int, ...]
    outcomes: tuple[StepOutcome, ...]
    error: str = ""  # what ended it early, if something did

    @property
    def losses(self) -> tuple[float, ...]:
        """The loss of each step."""
        return tuple(outcome.loss for outcome in self.outcomes)

    @property
    def norms(self) -> tuple[float, ...]:
        """The gradient norm of each step."""
        return tuple(outcome.norm for outcome in self.outcomes)

    @property
    def first_bad(self) -> int | None:
        """The first step with a loss, gradient, weight or moment that is not finite."""
        for step, outcome in zip(self.steps, self.outcomes, strict=True):
            if not outcome.is_finite:
                return step
        return None

    def measure(self, failing: int) -> WindowMeasure:
        """Summarise it around the failing step."""
        rows = zip(self.steps, self.losses, strict=True)
        after = [loss for step, loss in rows if step >= failing]
        return WindowMeasure(
            statistics.median(after) if after else None, self.first_bad, self.error
        )


@dataclass(frozen=True, slots=True)
class WindowEdit:
    """What is different about single steps of a window; nothing by default.

    `skips` names steps that are left out, `batches` returns what a step is given instead,
    `rates_of` is a step whose learning rates all steps get, `before` is called before each step.
    """

    skips: frozenset[int] = frozenset()
    batches: Callable[[int, list[Batch]], list[Batch]] | None = None
    rates_of: Step | None = None
    before: Mapping[int, Callable[[Setup], None]] = field(default_factory=dict)

    def combined(self, other: "WindowEdit") -> "WindowEdit":
        """Return both edits in one."""
        return WindowEdit(
            self.skips | other.skips,
            self.batches or other.batches,
            self.rates_of or other.rates_of,
            {**self.before, **other.before},
        )


NO_EDIT = WindowEdit()


class FailureWindow:
    """The steps of a capture in a setup: restored exactly, run any number of times."""

    def __init__(
        self,
        setup: Setup,
        capture: Capture,
        run: Run | None = None,
        *,
        drawn: Mapping[int, Batch] | None = None,
    ) -> None:
        self.setup, self.capture, self.run = setup, capture, run
        self._drawn = drawn or {}  # of steps that no loader feeds: what the script gave them
        self._randoms: list[RandomState] = []  # after each batch that was made
        fed = any(step.fetches for step in capture.steps)
        self.steps = [step for step in capture.steps if step.fetches or not fed]
        self._captured = CapturedState(setup, capture)
        self._start: State | None = None  # as captured
        self._spoiled_before: frozenset[Owner] = frozenset()  # not finite as captured
        self.failing = capture.alarm.step  # losses are not read at each step: it may be earlier
        self.onset = self.failing  # the first step that left its band
        self.bad = frozenset([self.onset])  # it, and those after it that fail on older weights too

    def recorded(self, step: int) -> float | None:
        """Return the loss that the run recorded for a step, or None."""
        if self.run is None or LOSS not in self.run:
            return None
        for series in self.run[LOSS].values():  # each phase has its own steps
            place = int(np.searchsorted(series.steps, step))
            if place < len(series) and series.steps[place] == step:
                return float(series.values[place])
        return None

    def restore(self) -> None:
        """Put the state of before the window back: weights, buffers, optimizers, modes."""
        if self._start is None:
            self._captured.load()
            self._start = State(self.setup)
            self._spoiled_before = _spoiled(self.setup)
        else:
            self._start.restore()

    def play(
        self,
        changes: Sequence[Change] = (),
        edit: WindowEdit = NO_EDIT,
        *,
        until: int | None = None,
        beyond: int = 0,
    ) -> ReplayTrial:
        """Run the window from its start to the step `until` (the failing one), and `beyond` it."""
        last = (self.failing if until is None else until) + beyond
        self.restore()
        rows: list[tuple[int, StepOutcome]] = []
        error = ""
        with contextlib.ExitStack() as stack:
            setup = self.setup
            for change in changes:
                setup = stack.enter_context(change.applied(setup))
            for step in self.steps:
                if step.step > last:
                    break
                if step.step in edit.skips:
                    continue
                try:
                    rows.append((step.step, self.one(step, edit, setup=setup)))
                except Exception as failure:
                    error = f"{type(failure).__name__}: {failure}"
                    break
        steps, outcomes = zip(*rows, strict=True) if rows else ((), ())
        return ReplayTrial(steps, outcomes, error)

    def one(
        self, step: Step, edit: WindowEdit = NO_EDIT, *, setup: Setup | None = None
    ) -> StepOutcome:
        """Run one step of the window.

        Loss and norm of several phases are the first's, unless another one is not finite.
        """
        setup = setup or self.setup
        self.set_rates(edit.rates_of or step)
        batches = self.batches(step)
        if edit.batches is not None:
            batches = edit.batches(step.step, batches)
        if step.step in edit.before:
            edit.before[step.step](setup)
        self.set_scale(step.step)
        with _norms_of(setup) as norms:
            means = self._as_drawn(setup, batches).losses_of_step(*batches)
        losses = [len(batches) * mean for mean in means]  # their sum is what a run records
        bad = [value for value in (*norms, *losses[1:]) if not math.isfinite(value)]
        norm = bad[0] if bad else norms[0] if norms else math.nan
        return StepOutcome(losses[0], norm, not self._spoiled_before >= _spoiled(setup))

    def to_step(self, step: Step) -> None:
        """Run the window up to `step`, whose update has not been made then."""
        before = [each.step for each in self.steps if each.step < step.step]
        if before:
            self.play(until=before[-1])
        else:
            self.restore()
        self.set_rates(step)
        self.set_scale(step.step)

    def batches(self, step: Step) -> list[Batch]:
        """Return what a step was given, with the random state right after it was fetched."""
        self._randoms = []
        made = [self._batch(fetch) for fetch in step.fetches]
        if not made:
            RandomState.of_device(step.random, step.random_cuda).restore()
            # Drawn once more even where it is known: the random numbers that follow depend on it.
            own = [self.setup.prepare(None)] if self.setup.prepare else self.setup.batches(1)
            made = [self._drawn[step.step]] if step.step in self._drawn else own
        return made

    def given(self, step: Step) -> list[Callable[[], Batch]]:
        """Return what makes each batch of a step, with the random state that it had then."""
        if step.fetches:
            return [partial(self._batch, fetch) for fetch in step.fetches]
        return [partial(lambda batch: batch, batch) for batch in self.batches(step)]

    def _batch(self, fetch: Fetched) -> Batch:
        batch = cloned(fetch.batch)  # on the host, as the loader gave it
        RandomState.of_device(fetch.random, fetch.random_cuda).restore()
        made = batch if self.setup.prepare is None else self.setup.prepare(batch)
        self._randoms.append(RandomState.now())
        return made

    def _as_drawn(self, setup: Setup, batches: Sequence[Batch]) -> Setup:
        """Give each of several batches the random state that followed its own fetch."""
        if len(batches) < 2 or len(self._randoms) != len(batches):
            return setup
        first, *others = setup.phases
        randoms = iter(self._randoms)

        def loss(batch: Batch) -> Tensor:
            next(randoms).restore()
            return first.loss(batch)

        return replace(setup, phases=(replace(first, loss=loss), *others))

    def set_rates(self, step: Step) -> None:
        """Give every group the learning rate that it had in a step."""
        for optimizer, rates in zip(self._captured.optimizers.values(), step.rates, strict=False):
            for group, rate in zip(optimizer.param_groups, rates, strict=False):
                set_rate(group, rate)

    def set_scale(self, step: int) -> None:
        """Give the loss scaler the scale that was recorded for a step."""
        if self.run is None or AMP_SCALE not in self.run:
            return
        series = next(iter(self.run[AMP_SCALE].values()))
        place = int(np.searchsorted(series.steps, step, "right")) - 1
        for phase in self.setup.phases:
            if phase.scaler is not None and place >= 0:
                phase.scaler.update(float(series.values[place]))


def _spoiled(setup: Setup) -> frozenset[Owner]:
    """Return the weights, buffers and optimizer states that are not finite."""
    tensors = owned(setup.models, setup.optimizers)
    return frozenset(owner for owner, tensor in tensors if extent(tensor.detach()) is not None)


@contextlib.contextmanager
def _norms_of(setup: Setup) -> Iterator[list[float]]:
    """Measure the gradient norm of each optimizer right before its update."""
    norms: list[float] = []

    def measure(optimizer: Optimizer, *_: Any) -> None:
        gradients = [p.grad for p in held_by(optimizer) if p.grad is not None]
        norms.append(float(nn.utils.get_total_norm(gradients)))

    hooks = [optimizer.register_step_pre_hook(measure) for optimizer in setup.optimizers]
    try:
        yield norms
    finally:
        for hook in hooks:
            hook.remove()
