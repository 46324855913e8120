"""An investigation: a captured failure is reproduced, traced to its birth, run under changes."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from torch import Tensor

from holter.diagnosis.facts.replays import (
    ChangeFamily,
    CureOutcome,
    ReplayedChange,
    Triage,
    family_of,
    judged,
)
from holter.lab import birth
from holter.lab.batches import size, tensors
from holter.lab.birth import Birth
from holter.lab.inapplicable import InapplicableError
from holter.lab.replay.failing import BEYOND, locate, rises
from holter.lab.replay.planning import PlannedReplay, planned_replays
from holter.lab.replay.samples import guilty_samples, triage
from holter.lab.replay.window import FailureWindow, ReplayTrial
from holter.lab.setup import Batch, LossPhase
from holter.lab.writing import Lab
from holter.record.errors import HolterError
from holter.record.events import (
    BirthFound,
    ChangesTried,
    ChangeTried,
    ExperimentMade,
    Reproduced,
    TriageMade,
    WindowMeasure,
)
from holter.record.signals import REPLAY_LOSS, REPLAY_NORM
from holter.record.trials import UNCHANGED
from holter.watching.blackbox.capture import Step

EXACT, REPRODUCED, NOT_REPRODUCED = "bit for bit", "reproduced", "not reproduced"
_ACTING = (
    ChangeFamily.RATE,
    ChangeFamily.CLIP,
    ChangeFamily.PRECISION,
    ChangeFamily.STATE,
)  # tried in pairs, too
_CLOSE = 1e-3  # relative, of losses that are not the same to the bit


@dataclass(frozen=True, slots=True)
class Reproduction:
    """How well a replay reproduced the recording."""

    verdict: str
    same: int  # steps whose loss is the recorded one to the bit
    compared: int
    repeatable: bool  # two replays gave the same

    @property
    def says(self) -> str:
        """The verdict in a sentence."""
        equal = f"{self.same} of {self.compared} recorded losses are identical"
        if self.verdict == EXACT:
            return f"reproduced bit for bit: {equal}"
        if self.verdict == REPRODUCED:
            return f"reproduced: it fails again; {equal}"
        why = (
            "two replays differ: nondeterminism"
            if not self.repeatable
            else (
                "two replays agree: the cause is outside the captured window, or it is the hardware"
            )
        )
        return f"not reproduced: {equal}; {why}"


class Investigation:
    """Investigates a captured failure, and records each result at once."""

    def __init__(self, window: FailureWindow, lab: Lab) -> None:
        self._window, self._lab = window, lab
        began = time.perf_counter()
        self.plain = window.play(beyond=BEYOND)
        if not self.plain.steps:
            raise HolterError(f"The captured step cannot be run again: {self.plain.error}.")
        self._band = locate(window, self.plain)
        self.seconds = time.perf_counter() - began
        self._unchanged = self.plain.measure(window.failing)
        self._write(UNCHANGED, self.plain)
        self.fails_by_nan = self.plain.first_bad is not None
        spike = window.capture.alarm.kind == "spike" and rises(window, self.plain, self._band)
        self.fails = self.fails_by_nan or spike
        self._birth: Birth | None = None  # once it is traced

    def reproduce(self) -> Reproduction:
        """Run the window again, and compare it with the recording."""
        window, plain = self._window, self.plain
        again = window.play(until=plain.steps[-1])
        repeatable = all(map(_same, plain.losses, again.losses))
        pairs = [
            (loss, recorded)
            for step, loss in zip(plain.steps, plain.losses, strict=True)
            if (recorded := window.recorded(step)) is not None
        ]
        same = sum(_same(loss, recorded) for loss, recorded in pairs)
        fails = self.fails or window.capture.alarm.kind in ("asked", "exception")
        if pairs and same == len(pairs) and repeatable:
            verdict = EXACT
        elif fails and all(_near(loss, recorded) for loss, recorded in pairs):
            verdict = REPRODUCED
        else:
            verdict = NOT_REPRODUCED
        found = Reproduction(verdict, same, len(pairs), repeatable)
        self._lab.event(
            Reproduced(
                verdict=found.verdict,
                says=found.says,
                failing=window.failing,
                onset=window.onset,
                state_step=window.capture.steps[0].step,
                alarm=window.capture.alarm.kind,
                same=found.same,
                compared=found.compared,
                repeatable=found.repeatable,
                normal_loss=self._band.median,
                normal_spread=self._band.spread,
                unchanged=self._unchanged,
            )
        )
        return found

    def trace(self) -> Birth | None:
        """Find the operation that gave the first value that is not finite, or None."""
        if not self.fails_by_nan:
            return None
        window = self._window
        failing = [step for step in window.steps if step.step <= window.failing][-1]
        window.to_step(failing)
        found = self._birth = self._traced(failing)
        if found is not None:
            self._lab.event(BirthFound(found, window.failing))
        return found

    def _traced(self, step: Step) -> Birth | None:
        """The first birth in a step, phase by phase and batch by batch of those it accumulates.

        A batch that was delivered clean and is not when the model gets it is made within what is
        traced: what the script does to it gives birth.
        """
        setup, given = self._window.setup, self._window.given(step)
        batches: list[Batch] = []
        for number, phase in enumerate(setup.phases):
            gathered = Gathered(phase)
            for place, make in enumerate(given):
                if not number:  # which leaves the random state that the batch had
                    batches.append(make())
                batch = batches[place]
                spoiled = not number and bool(step.fetches) and not _is_finite(batch)
                again = make if spoiled and _is_finite(step.fetches[place].batch) else None

                def loss(
                    phase: LossPhase = phase,
                    batch: Batch = batch,
                    again: Callable[[], Batch] | None = again,
                ) -> Tensor:
                    return phase.loss(batch if again is None else again())

                found = birth.find(
                    loss,
                    setup.models,
                    phase.optimizers,
                    samples=_count(batch),
                    stepped_at=phase.stepped_at,
                    update=gathered.update if place == len(given) - 1 else gathered.keep,
                )
                if found is not None:
                    return found
        return None

    def try_changes(self) -> Iterator[ReplayedChange]:
        """Try one change after the other; two together if none of them cures alone."""
        alone = planned_replays(self._window, self._birth)
        cured = False
        for planned in alone:
            found = self._try(planned)
            cured = cured or found.outcome is CureOutcome.CURES
            yield found
        for planned in () if cured else _pairs(alone):
            found = self._try(planned)
            if found.outcome is CureOutcome.CURES:
                yield found
                break
        self._lab.event(ChangesTried())

    def _try(self, planned: PlannedReplay) -> ReplayedChange:
        measure, why_not = WindowMeasure(), planned.why_not
        if not why_not:
            trial = self._window.play(planned.changes, planned.edit, beyond=BEYOND)
            if planned.reached is None or planned.reached():
                measure = trial.measure(self._window.failing)
                self._write(planned.name, trial)
            else:
                why_not = "the step does not call it by itself"
        self._lab.event(ChangeTried(planned.name, why_not, measure))
        return judged(planned.name, measure, self._unchanged, self._band, why_not=why_not)

    def separate(self) -> Triage:
        """Find out whether it is the data or the state, and which samples."""
        found = triage(self._window, self._band)
        if found.batch_on_older_weights:
            found = replace(found, samples=guilty_samples(self._window, self._band))
        self._lab.event(
            TriageMade(
                found.batch_on_older_weights, found.older_batch_on_these_weights, found.samples
            )
        )
        return found

    def _write(self, name: str, trial: ReplayTrial) -> None:
        for values, signal in ((trial.losses, REPLAY_LOSS), (trial.norms, REPLAY_NORM)):
            for first, part in _runs(trial.steps, values):
                self._lab.write(signal, part, trial=name, first=first)


def _pairs(alone: Sequence[PlannedReplay]) -> Iterator[PlannedReplay]:
    """Combine changes that act on the step itself, of different families."""
    acting = [each for each in alone if not each.why_not and family_of(each.name) in _ACTING]
    for one, other in combinations(acting, 2):
        if family_of(one.name) is not family_of(other.name):
            yield one.together_with(other)


class Gathered:
    """The gradients of the batches that make a step, and its update; each is traced by itself."""

    def __init__(self, phase: LossPhase) -> None:
        self._phase = phase
        self._sums: dict[Tensor, Tensor] = {}

    def keep(self) -> None:
        """A batch is through, and others follow."""
        self._add()
        for parameter in self._phase.parameters:
            if parameter.grad is not None:
                self._sums[parameter] = parameter.grad

    def update(self) -> None:
        """The update as the training makes it: unscaled, clipped."""
        self._add()
        self._phase.update()

    def _add(self) -> None:
        for each, before in self._sums.items():
            each.grad = before if each.grad is None else each.grad + before


def _runs(steps: Sequence[int], values: Sequence[float]) -> Iterator[tuple[int, list[float]]]:
    """Pieces whose steps follow each other."""
    piece: list[float] = []
    for place, (step, value) in enumerate(zip(steps, values, strict=True)):
        if piece and step != steps[place - 1] + 1:
            yield steps[place - 1] + 1 - len(piece), piece
            piece = []
        piece.append(value)
    if piece:
        yield steps[-1] + 1 - len(piece), piece


def _is_finite(batch: Batch) -> bool:
    return all(bool(tensor.isfinite().all()) for tensor in tensors(batch))


def _count(batch: object) -> int | None:
    try:
        return size(batch)
    except InapplicableError:
        return None


def _same(one: float, other: float) -> bool:
    return np.float32(one).tobytes() == np.float32(other).tobytes() or (
        math.isnan(one) and math.isnan(other)
    )


def _near(one: float, other: float) -> bool:
    if not (math.isfinite(one) and math.isfinite(other)):
        return math.isfinite(one) == math.isfinite(other)
    return abs(one - other) <= _CLOSE * max(abs(one), abs(other), 1e-12)


def estimate(investigation: Investigation, rungs: int = 15) -> float:
    """Estimate the seconds that the whole takes from those of one window."""
    return investigation.seconds * (rungs + 4)


def whole(window: FailureWindow, lab: Lab, *, ladder: bool = True) -> Iterator[str]:
    """Run the whole investigation, and yield a line for the user after each part."""
    began = time.perf_counter()
    found = Investigation(window, lab)
    yield f"one replay takes {found.seconds:.2g} s; estimated total {estimate(found):.2g} s"
    yield found.reproduce().says
    traced = found.trace()
    if traced is not None:
        yield traced.says
    if not found.fails:
        yield "the failure does not happen again: no change is tried"
    elif ladder:
        for change in found.try_changes():
            yield f"{change.name}: {change.outcome} ({change.says})"
        yield found.separate().says
    lab.event(ExperimentMade("replay", time.perf_counter() - began))
