"""A captured failure put back into a training, to be run again, unchanged or with changes."""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor
from torch.optim import Optimizer

from holter.lab.batches import cloned
from holter.lab.birth.owners import Owner, owned
from holter.lab.birth.values import extent
from holter.lab.changes import Change
from holter.lab.changes.learning_rate import set_rate
from holter.lab.randomness import RandomState
from holter.lab.replay.editing import ScriptEdits
from holter.lab.replay.loading import CapturedState
from holter.lab.replay.outcomes import ReplayTrial, StepOutcome, gradient_norm
from holter.lab.setup import Batch, LossPhase, Setup
from holter.lab.state import State
from holter.record import Run
from holter.record.errors import HolterError
from holter.record.signals import AMP_SCALE, LOSS
from holter.watching.blackbox.capture import Capture, Fetched, Step
from holter.watching.blackbox.shadow import held_by
from holter.watching.collectors.script_factors import ScriptFactors, script_factors

_EARLIER = 32  # recorded losses before the window that are compared with


class UnknownBatchError(HolterError):
    """What a step was given is not known."""

    def __init__(self, step: int) -> None:
        super().__init__(f"What step {step} was given is not known.")


@dataclass(frozen=True, slots=True)
class WindowEdit:
    """What is different about single steps of a window; nothing by default.

    `skips` names steps that are left out, `batches` returns what a step is given instead,
    `rates_of` is a step whose learning rates all steps get, with `leaves_weights` nothing writes to
    weights between steps, `before` is called before each step.
    """

    skips: frozenset[int] = frozenset()
    batches: Callable[[int, list[Batch]], list[Batch]] | None = None
    rates_of: Step | None = None
    leaves_weights: bool = False
    before: Mapping[int, Callable[[Setup], None]] = field(default_factory=dict)

    def combined(self, other: "WindowEdit") -> "WindowEdit":
        """Return both edits in one."""
        return WindowEdit(
            self.skips | other.skips,
            self.batches or other.batches,
            self.rates_of or other.rates_of,
            self.leaves_weights or other.leaves_weights,
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
        drawn: Mapping[int, Sequence[Batch]] | None = None,
    ) -> None:
        self.setup, self.capture, self.run = setup, capture, run
        self._drawn = drawn or {}  # what the script gave its steps when it was run again
        self._randoms: list[RandomState] = []  # after each batch that was made
        self._captured = CapturedState(setup, capture)
        self._fed: dict[int, Step] = {}  # the step whose fetches each step is given
        self.steps = self._trained()
        self.edits = ScriptEdits(self._captured)
        self._start: State | None = None  # as captured
        self._spoiled_before: frozenset[Owner] = frozenset()  # not finite as captured
        self.failing = capture.alarm.step  # losses are not read at each step: it may be earlier
        self.onset = self.failing  # the first step that left its band
        self.bad = frozenset([self.onset])  # it, and those after it that fail on older weights too

    def kind(self, step: Step) -> int:
        """Return the phase that made a step, by who stepped; -1 where that does not decide it."""
        known = self._captured.optimizers
        stepped = {id(known[label]) for label in step.stepped if label in known}
        chosen = [
            number
            for number, phase in enumerate(self.setup.phases)
            if any(id(optimizer) in stepped for optimizer in phase.optimizers)
        ]
        if len(self.setup.phases) == 1:
            return 0
        return chosen[0] if len(chosen) == 1 else -1

    def phases(self, step: Step, setup: Setup | None = None) -> tuple[LossPhase, ...]:
        """Return the phases of a setup that make a step."""
        phases, kind = (setup or self.setup).phases, self.kind(step)
        return phases if kind < 0 else (phases[kind],)

    def like(self, step: Step) -> list[Step]:
        """Return the steps that the same phase made."""
        return [each for each in self.steps if self.kind(each) == self.kind(step)]

    def at(self, step: int) -> Step:
        """Return the last step of the window up to the one with this number."""
        return [each for each in self.steps if each.step <= step][-1]

    def _trained(self) -> list[Step]:
        """Return the captured steps that can be run.

        A step without a fetch of its own is given the last one: of a GAN, the second phase.
        """
        steps = self.capture.steps
        if not any(step.fetches for step in steps):
            return list(steps)
        found: list[Step] = []
        last: Step | None = None
        for step in steps:
            last = step if step.fetches else last
            if last is not None and (step.fetches or (step.stepped and self.kind(step) >= 0)):
                self._fed[step.step] = last
                found.append(step)
        return found

    def recorded(self, step: int) -> float | None:
        """Return the loss that the run recorded for a step, or None."""
        if self.run is None or LOSS not in self.run:
            return None
        for series in self.run[LOSS].values():  # each phase has its own steps
            place = int(np.searchsorted(series.steps, step))
            if place < len(series) and series.steps[place] == step:
                return float(series.values[place])
        return None

    def recorded_before(self, first: Step) -> list[float]:
        """Return the finite losses that the run recorded for the steps before one of its phase."""
        if self.run is None or LOSS not in self.run:
            return []
        for series in self.run[LOSS].values():
            if first.step in series.steps:
                before = series.values[series.steps < first.step][-_EARLIER:]
                return [float(loss) for loss in before if math.isfinite(loss)]
        return []

    def restore(self) -> None:
        """Put the state of before the window back: weights, buffers, optimizers, modes."""
        if self._start is None:
            self._captured.load()
            self.edits.of_start(self.steps[0])
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
        unchanged = not changes and edit is NO_EDIT
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
                    self.between(step, edit, None if unchanged else setup)
                    rows.append((step.step, self.one(step, edit, setup=setup)))
                except Exception as failure:
                    error = f"{type(failure).__name__}: {failure}"
                    break
        steps, outcomes = zip(*rows, strict=True) if rows else ((), ())
        return ReplayTrial(steps, outcomes, error)

    def between(self, step: Step, edit: WindowEdit = NO_EDIT, changed: Setup | None = None) -> None:
        """Do to the weights what the script did between the step before and this one."""
        place = self.steps.index(step)
        if not place or edit.leaves_weights:
            return
        written = self.phases(self.steps[place - 1], changed)[-1].rewrite
        rewrite = None if written is None else written.run
        if changed is None:
            self.edits.restore(step, rewrite)
        else:
            self.edits.repeat(step, rewrite)

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
        factors: list[ScriptFactors] = []
        with _norms_of(setup) as norms:
            losses = [
                setup.run_phase(self._as_drawn(phase, batches, factors), batches)
                for phase in self.phases(step, setup)
            ]
        bad = [value for value in (*norms, *losses[1:]) if not math.isfinite(value)]
        return StepOutcome(
            losses[0] * (factors[0].undone if len(batches) > 1 else 1 / factors[0].scale),
            bad[0] if bad else norms[0] if norms else math.nan,
            not self._spoiled_before >= _spoiled(setup),
            self.kind(step),
        )

    def to_step(self, step: Step) -> None:
        """Run the window up to `step`, whose update has not been made then."""
        before = [each.step for each in self.steps if each.step < step.step]
        if before:
            self.play(until=before[-1])
            self.between(step)
        else:
            self.restore()
        self.set_rates(step)
        self.set_scale(step.step)

    def batches(self, step: Step) -> list[Batch]:
        """Return what a step was given, with the random state right after it was fetched."""
        self._randoms = []
        return [make() for make in self.given(step)]

    def fetches(self, step: Step) -> tuple[Fetched, ...]:
        """Return what loaders delivered for a step, or for the one before that it goes on with."""
        fed = self._fed.get(step.step)
        return () if fed is None else fed.fetches

    def given(self, step: Step) -> list[Callable[[], Batch]]:
        """Return what makes each batch of a step, with the random state that it had then."""
        if step.step in self._drawn:
            batches = enumerate(self._drawn[step.step])
            return [partial(self._drawn_batch, step, place, batch) for place, batch in batches]
        fed = self._fed.get(step.step)
        if fed is None:
            return [partial(self._own_batch, step)]
        return [
            partial(self._batch, fetch, step, own=fed is step, first=not place)
            for place, fetch in enumerate(fed.fetches)
        ]

    def _drawn_batch(self, step: Step, place: int, batch: Batch) -> Batch:
        """Return what the script gave a step when it was run again, which holds random states.

        Only that of the first step holds none: it is made once more for what it draws.
        """
        fetches = self.fetches(step)
        if place < len(fetches):
            self._batch(fetches[place], step, own=bool(step.fetches), first=not place)
        elif not place:
            RandomState.of_device(step.random, step.random_cuda).restore()
            self._prepared(None, step)
        return batch

    def _own_batch(self, step: Step) -> Batch:
        """Return what a step draws by itself."""
        RandomState.of_device(step.random, step.random_cuda).restore()
        own = self._prepared(None, step)
        if own is not None:
            return own
        held = self.setup.batches(2)
        if len(held) != 1 or self._drawn:  # not the same data at every step
            raise UnknownBatchError(step.step)
        return held[0]

    def _batch(self, fetch: Fetched, step: Step, *, own: bool, first: bool) -> Batch:
        batch = cloned(fetch.batch)  # on the host, as the loader gave it
        if own:
            RandomState.of_device(fetch.random, fetch.random_cuda).restore()
        elif first:
            RandomState.of_device(step.random, step.random_cuda).restore()
        prepared = self._prepared(batch, step)
        self._randoms.append(RandomState.now())
        return batch if prepared is None else prepared

    def _prepared(self, delivered: Any, step: Step) -> Batch | None:
        """Return what the phases of a step make of a batch, or None where that is not known."""
        parts = [phase.prepare for phase in self.phases(step) if phase.prepare is not None]
        if not parts or len(parts) < len(self.phases(step)):
            return None
        return {key: value for part in parts for key, value in part(delivered).items()}

    def _as_drawn(
        self, phase: LossPhase, batches: Sequence[Batch], factors: list[ScriptFactors]
    ) -> LossPhase:
        """Give each of several batches the random state that followed its own fetch."""
        randoms = iter(self._randoms if len(self._randoms) == len(batches) > 1 else ())

        def loss(batch: Batch) -> Tensor:
            random = next(randoms, None)
            if random is not None:
                random.restore()
            computed = phase.loss(batch)
            factors.append(script_factors(computed))
            return computed

        return replace(phase, loss=loss)

    def set_rates(self, step: Step) -> None:
        """Give every group the learning rate that it had in a step."""
        for optimizer, rates in zip(self._captured.optimizers.values(), step.rates, strict=False):
            for group, rate in zip(optimizer.param_groups, rates, strict=False):
                set_rate(group, rate)
        pairs = zip(self._captured.optimizers.values(), step.settings, strict=False)
        for optimizer, settings in pairs:
            for group, numbers in zip(optimizer.param_groups, settings, strict=False):
                for key, number in numbers.items():
                    if not isinstance(group.get(key), Tensor):
                        group[key] = tuple(number) if isinstance(number, list) else number

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
        norms.append(gradient_norm(gradients))

    hooks = [optimizer.register_step_pre_hook(measure) for optimizer in setup.optimizers]
    try:
        yield norms
    finally:
        for hook in hooks:
            hook.remove()
