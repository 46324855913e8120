"""An investigation: a captured failure is reproduced, traced to its birth, and cured."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor, nn

from holter.lab import birth
from holter.lab.batches import size, tensors
from holter.lab.birth import Birth
from holter.lab.experiments import InapplicableError
from holter.lab.lab import Lab
from holter.lab.replay.ladder import Climbed, band_of, climb, timed
from holter.lab.replay.samples import Triage, guilty, triage
from holter.lab.replay.window import Trial, Window
from holter.lab.setup import Batch, Phase, Setup
from holter.record.errors import HolterError
from holter.record.events import (
    BirthFound,
    ExperimentMade,
    LadderClimbed,
    Reproduced,
    RungClimbed,
    TriageMade,
)
from holter.record.signals import REPLAY_LOSS, REPLAY_NORM
from holter.watching.blackbox.capture import Step

EXACT, REPRODUCED, NOT_REPRODUCED = "bit for bit", "reproduced", "not reproduced"
AS_IT_WAS = "as it was"
_CLOSE = 1e-3  # relative, of losses that are not the same to the bit


@dataclass(frozen=True, slots=True)
class Reproduction:
    """How far a replay gave what was recorded."""

    verdict: str
    same: int  # steps whose loss is the recorded one to the bit
    compared: int
    repeatable: bool  # two replays gave the same

    @property
    def says(self) -> str:
        """The verdict in a sentence."""
        equal = f"{self.same} of {self.compared} recorded losses are equal to the bit"
        if self.verdict == EXACT:
            return f"reproduced bit for bit: {equal}"
        if self.verdict == REPRODUCED:
            return f"reproduced: it fails again; {equal}"
        why = (
            "two replays differ: nondeterminism"
            if not self.repeatable
            else ("two replays agree: what failed was not in the window, or it was the hardware")
        )
        return f"not reproduced: {equal}; {why}"


class Investigation:
    """Goes through a captured failure; what is known is written down at once."""

    def __init__(self, window: Window, lab: Lab) -> None:
        self._window, self._lab = window, lab
        self.plain, self.seconds = timed(window)
        if not self.plain.steps:
            raise HolterError(f"The captured step cannot be run again: {self.plain.error}.")
        self._write(AS_IT_WAS, self.plain)
        self.fails_by_nan = self.plain.first_bad is not None
        spike = window.capture.alarm.kind == "spike" and self._rises()
        self.fails = self.fails_by_nan or spike

    def _rises(self) -> bool:
        """Whether the loss leaves its band in the replay, as it did in the training."""
        middle, spread = band_of(self._window, self.plain)
        rows = zip(self.plain.steps, self.plain.losses, strict=True)
        after = [loss for step, loss in rows if step >= self._window.failing]
        return bool(after) and max(after) > middle + 8 * spread

    def reproduce(self) -> Reproduction:
        """Run the window once more, and compare with what was recorded."""
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
            )
        )
        return found

    def trace(self) -> Birth | None:
        """The birth of what is not finite, if anything is."""
        if not self.fails_by_nan:
            return None
        window = self._window
        steps = [each for each in window.steps if each.step <= window.failing]
        if len(steps) > 1:
            window.play(until=steps[-2].step)
        else:
            window.restore()
        window.set_rates(steps[-1])
        window.set_scale(steps[-1].step)
        found = self._traced(steps[-1])
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
                    phase: Phase = phase,
                    batch: Batch = batch,
                    again: Callable[[], Batch] | None = again,
                ) -> Tensor:
                    return phase.loss(batch if again is None else again())

                found = birth.find(
                    loss,
                    setup.models,
                    phase.optimizers,
                    samples=_count(batch),
                    update=gathered.update if place == len(given) - 1 else gathered.keep,
                )
                if found is not None:
                    return found
        return None

    def climb(self) -> Iterator[Climbed]:
        """The ladder, rung by rung."""
        ladder = None
        middle, spread = band_of(self._window, self.plain)
        self._ceiling = middle + 8 * spread if math.isfinite(middle) else math.inf
        self._triage = triage(self._window, self._ceiling)
        for known in climb(self._window, self.plain, is_data=self._triage.is_data):
            ladder, each = known, known.climbed[-1]
            if each.trial is not None:
                self._write(each.name, each.trial)
            self._lab.event(RungClimbed(each.name, each.family, each.outcome, each.says))
            yield each
        if ladder is not None:
            minimal = ladder.minimal
            self._lab.event(
                LadderClimbed(
                    cures=tuple(each.name for each in ladder.cures),
                    families=tuple(sorted({each.family for each in ladder.cures})),
                    tried=tuple(sorted({e.family for e in ladder.climbed if e.trial is not None})),
                    minimal=None if minimal is None else minimal.name,
                    pairs=tuple(ladder.pairs),
                    middle=ladder.band[0],
                    spread=ladder.band[1],
                )
            )

    def separate(self) -> str:
        """Data or state, and which samples."""
        found = self._triage or triage(self._window, self._ceiling)
        samples = guilty(self._window, self._ceiling) if found.batch_on_older_weights else None
        self._lab.event(
            TriageMade(
                says=found.says,
                batch_on_older_weights=found.batch_on_older_weights,
                older_batch_on_these_weights=found.older_batch_on_these_weights,
                samples=samples,
            )
        )
        return found.says

    _ceiling = math.inf
    _triage: Triage | None = None

    def _write(self, name: str, trial: Trial) -> None:
        for values, signal in ((trial.losses, REPLAY_LOSS), (trial.norms, REPLAY_NORM)):
            for first, part in _runs(trial.steps, values):
                self._lab.write(signal, part, trial=name, first=first)


class Gathered:
    """The gradients of the batches that make a step, and its update; each is traced by itself."""

    def __init__(self, phase: Phase) -> None:
        self._phase = phase
        self._sums: dict[Tensor, Tensor] = {}

    def keep(self) -> None:
        """A batch is through, and others follow."""
        self._add()
        for each in Setup.parameters(self._phase):
            if each.grad is not None:
                self._sums[each] = each.grad

    def update(self) -> None:
        """The update as the training makes it: unscaled, clipped."""
        self._add()
        phase = self._phase
        for optimizer in phase.optimizers:
            if phase.scaler is not None and phase.max_norm is not None:
                phase.scaler.unscale_(optimizer)
        if phase.max_norm is not None:
            held = [each for each in Setup.parameters(phase) if each.grad is not None]
            nn.utils.clip_grad_norm_(held, phase.max_norm)
        for optimizer in phase.optimizers:
            if phase.scaler is None:
                optimizer.step()
            else:
                phase.scaler.step(optimizer)

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
    return all(bool(each.isfinite().all()) for each in tensors(batch))


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
    """Seconds that the whole will take, by what one window took."""
    return investigation.seconds * (rungs + 4)


def whole(window: Window, lab: Lab, *, ladder: bool = True) -> Iterator[str]:
    """All of it, with a line for people after each part."""
    began = time.perf_counter()
    found = Investigation(window, lab)
    yield f"one window takes {found.seconds:.2g} s; all of it some {estimate(found):.2g} s"
    yield found.reproduce().says
    traced = found.trace()
    if traced is not None:
        yield traced.says
    if not found.fails:
        yield "it does not fail again: there is nothing to cure"
    elif ladder:
        for each in found.climb():
            yield f"{each.name}: {each.outcome} ({each.says})"
        yield found.separate()
    lab.event(ExperimentMade("replay", time.perf_counter() - began))
