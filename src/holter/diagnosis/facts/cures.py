"""What became of a training that was repeated under one change at a time."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.cure_causes import cause_of, is_by_validation, reference_of, size_of
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.facts.tried import CONFIRMED, Effect, TrialEnd, TriedChange
from holter.diagnosis.facts.weak import TUNED, is_far_below, is_weak, share_of, tells
from holter.record import Run
from holter.record.errors import HolterError
from holter.record.events import CureTried, OutOfTime
from holter.record.signals import CURE_LOSS, LOSS
from holter.record.trials import UNCHANGED, TrialKind, TrialName

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts
    from holter.diagnosis.facts.outcome import Outcome

EXPERIMENT = "cures"
SHUFFLED = str(TrialName(TrialKind.LABELS_SHUFFLED))  # a control
_VISIBLE = 0.1  # least difference of two levels that counts, as a share of the unchanged one
_SIGMAS = 3.0  # of the noise between repeats
_RESTORED = 0.5  # least share of the best improvement that a cure reaches
_DIVERGED = 2.0  # times the median level of all repeats: one that ends higher has diverged
_WHOLE = 0.9  # least share of the steps compared that a trial has to make
_STALLED = "stalled"  # an outcome
_ALIKE = 0.05  # difference between true and shuffled labels that is none
_HALVED = 0.5  # gain that is always visible, and least gain over a training that stalled
# Outcomes that the validation loss decides: trials are compared by it.
OF_VALIDATION = ("overfits", "learned only the training data")


@dataclass(frozen=True)
class Cures:
    """All changes that were tried on a training, and the noise of the unchanged one."""

    outcome: "Outcome | None"
    unchanged: tuple[TrialEnd, ...]
    noise: float  # between repeats, as a share of their level
    tried: Mapping[str, TriedChange]
    untried: tuple[str, ...] = ()  # for lack of time

    @property
    def failed(self) -> bool:
        """Whether the unchanged training fails, and learns in no repeat."""
        bad = [end.bad for end in self.unchanged]
        return any(bad) and False not in bad

    @property
    def weak(self) -> bool:
        """Whether the unchanged training learned only a part."""
        return self.outcome is not None and is_weak(self.outcome)

    @property
    def by_validation(self) -> bool:
        """Whether trainings are compared by their validation loss."""
        return any(end.by_validation for end in self.unchanged)

    @cached_property
    def improving(self) -> tuple[TriedChange, ...]:
        """The changes with which a weak training ends far lower, the smallest first.

        Each repeat is compared with the unchanged training from the same random numbers, and with
        what other learning rates and the reference optimizer make of it, where they were tried.
        """
        if not self.weak:
            return ()
        found = [change for change in self.tried.values() if self._improves(change)]
        return tuple(sorted(found, key=lambda change: size_of(change.name)))

    def _improves(self, change: TriedChange) -> bool:
        first = self.unchanged[0]
        whole = all(end.steps >= _WHOLE * first.steps for end in change.ends)
        if not change.ends or not whole or not tells(change.name, by_validation=self.by_validation):
            return False
        tuned = min([1.0, *(end.level / first.level for end in self._tuned if first.level > 0)])

        def is_far(end: TrialEnd, *, nearly: bool) -> bool:
            other = self._paired.get(end.repeat, first)
            share = share_of(change.name, by_validation=end.by_validation, nearly=nearly)
            return end.by_validation is other.by_validation and is_far_below(
                end.level, tuned * other.level, other.constant, share
            )

        far = sum(is_far(end, nearly=False) for end in change.ends)
        nearly = all(is_far(end, nearly=change.confirmed) for end in change.ends)
        return nearly and 2 * far > len(change.ends)

    @property
    def _paired(self) -> dict[int, TrialEnd]:
        return {end.repeat: end for end in self.unchanged}

    @property
    def _tuned(self) -> list[TrialEnd]:
        return [end for name in TUNED if name in self.tried for end in self.tried[name].ends]

    @property
    def improvement(self) -> TriedChange | None:
        """The smallest confirmed change with which a weak training ends far lower, or None."""
        if any(name not in self.tried for name in TUNED) or len(self.unchanged) < CONFIRMED:
            return None
        return next((change for change in self.improving if change.confirmed), None)

    @property
    def best_tuned(self) -> float:
        """The lowest loss with other learning rates or the reference optimizer."""
        return min((end.level for end in self._tuned), default=math.nan)

    @property
    def concluded(self) -> TriedChange | None:
        """The change that the trials name: of a failure the cure, of a weak training the gain."""
        found = self.improvement if self.weak else self.smallest or self.localising
        return found or self.unrelated

    @property
    def unrelated(self) -> TriedChange | None:
        """The trial with shuffled labels, if it learns them as well as the true ones, or None.

        It tells only of a training that learned something of its labels.
        """
        learned = self.weak or (
            self.outcome is not None and str(self.outcome.state) == OF_VALIDATION[-1]
        )
        change = self.tried.get(SHUFFLED)
        if not learned or change is None or not change.confirmed:
            return None
        return change if change.gain >= -_ALIKE else None

    @cached_property
    def cures(self) -> tuple[TriedChange, ...]:
        """The changes that restore learning and are a fix, the smallest first."""
        found = [c for c in self._curing if not c.cause.is_swap]
        best = max((change.gain for change in found), default=0.0)
        return tuple(change for change in found if change.gain >= _RESTORED * best)

    @cached_property
    def swaps(self) -> tuple[TriedChange, ...]:
        """The swaps of a part that restore learning, the smallest first.

        Labels that can be learned tell about the data only if no other part is at fault.
        """
        found = [c for c in self._curing if c.cause.is_swap and not c.cause.by_training]
        others = [
            change
            for change in self.tried.values()
            if change.cause.is_swap and not change.cause.is_control
        ]
        tried = [each for each in others if each.effect in (Effect.NONE, Effect.WORSE)]
        return tuple(change for change in found if not change.cause.is_control or tried)

    @property
    def _curing(self) -> list[TriedChange]:
        found = [change for change in self.tried.values() if change.effect is Effect.CURES]
        return sorted(found, key=lambda change: size_of(change.name))

    @property
    def smallest(self) -> TriedChange | None:
        """The smallest confirmed change that restores learning and is a fix, or None."""
        return next((change for change in self.cures if change.confirmed), None)

    @property
    def localising(self) -> TriedChange | None:
        """The smallest confirmed swap that restores learning, or None."""
        return next((change for change in self.swaps if change.confirmed), None)

    def with_effect(self, effect: Effect) -> tuple[str, ...]:
        """Return the names of changes with an effect; controls change no part of the training."""
        found = (each for each in self.tried.values() if each.effect is effect)
        return tuple(change.name for change in found if not change.cause.is_control)


def judged(facts: "Facts") -> "Outcome | None":
    """Return how a run went, or None where that cannot be judged."""
    from holter.diagnosis.facts.outcome import OutcomeState

    outcome = facts.run_outcome
    return None if outcome.state is OutcomeState.UNKNOWN else outcome


def is_poor(outcome: "Outcome") -> bool:
    """Whether a training failed, or stalled hardly below the best constant prediction."""
    return outcome.bad or str(outcome.state) == _STALLED


Known = dict[tuple[str, int, bool], "TrialEnd | None"]  # ends that were read before


def cures_of(run: Run, known: Known | None = None) -> Cures | None:
    """Return what repeated trainings showed, or None if there are none.

    Trials that have ended do not change: `known` keeps what was read of them.
    """
    from holter.diagnosis.facts import Facts

    if CURE_LOSS not in run:
        return None
    events = [event.what for event in run.events_of(CureTried)]
    latest = {(event.trial, event.repeat): event for event in events}  # the longest comes last
    outcome = judged(Facts(run))
    trials = _Trials(run, outcome, latest, {} if known is None else known)
    references = {UNCHANGED, *(reference_of(trial) for trial, _ in latest)}
    names = dict.fromkeys(trial for trial, _ in latest if trial not in references)
    untried = [e.what.trial for e in run.events_of(OutOfTime) if e.what.experiment == EXPERIMENT]
    return Cures(
        outcome,
        trials.unchanged,
        _noise(trials.unchanged),
        {name: trials.tried(name) for name in names},
        tuple(name for name in untried if name not in names),
    )


class _Trials:
    """The repeated trainings of a run, compared with the unchanged one."""

    def __init__(
        self,
        run: Run,
        outcome: "Outcome | None",
        events: Mapping[tuple[str, int], CureTried],
        known: Known,
    ) -> None:
        self._run, self._events, self._known = run, events, known
        self._failed = outcome is not None and outcome.bad
        self._of_validation = outcome is not None and (
            str(outcome.state) in OF_VALIDATION or is_weak(outcome)
        )
        self._length = max((event.steps for event in events.values()), default=run.steps)
        repeats = [0, *(repeat for trial, repeat in events if trial == UNCHANGED)]
        ends = [
            self._unchanged(repeat, self._length, self._of_validation)
            for repeat in dict.fromkeys(repeats)
        ]
        self.unchanged = tuple(end for end in ends if end is not None)

    def tried(self, name: str) -> TriedChange:
        """Return the effect of a change."""
        events = [event for (trial, _), event in self._events.items() if trial == name]
        if failed := next((event.failed for event in events if event.failed), ""):
            return TriedChange(name, Effect.FAILED, failed=failed)
        if not any(event.altered for event in events):
            return TriedChange(name, Effect.IDLE, failed="the training has nothing of the kind")
        pairs = [
            (end, reference)
            for event in events
            if (end := self._end(event, event.steps)) is not None
            and (reference := self._reference(event)) is not None
        ]
        if not pairs:
            return TriedChange(name, Effect.FAILED, failed="no loss was recorded")
        gains = [_gain(name, end, reference) for end, reference in pairs]
        ends = tuple(end for end, _ in pairs)
        instead = float(np.median([reference.level for _, reference in pairs]))
        effect = self._effect(pairs, gains)
        return TriedChange(name, effect, ends, float(np.median(gains)), instead)

    def _effect(self, pairs: Sequence[tuple[TrialEnd, TrialEnd]], gains: Sequence[float]) -> Effect:
        # However far failures differ, half the loss in every repeat is no chance.
        limit = min(max(_VISIBLE, _SIGMAS * _noise(self.unchanged)), _HALVED)
        if max(gains) < -limit:
            return Effect.WORSE
        if min(gains) <= limit:
            return Effect.NONE
        whole = all(end.steps >= _WHOLE * self._length for end, _ in pairs)
        failing = all(reference.bad is not False for _, reference in pairs)
        learned = all(end.bad is False for end, _ in pairs)
        learned = learned and min(gains) > (_VISIBLE if self._failed else _HALVED)
        return Effect.CURES if whole and failing and learned else Effect.HELPS

    def _reference(self, event: CureTried) -> TrialEnd | None:
        """Return the end of the training that a trial is compared with."""
        name = reference_of(event.trial)
        if name != UNCHANGED:
            other = self._events.get((name, event.repeat))
            return None if other is None else self._end(other, event.steps)
        return self._unchanged(event.repeat, event.steps, self._is_by_validation(event.trial))

    def _is_by_validation(self, trial: str) -> bool:
        own = is_by_validation(trial)
        return self._of_validation if own is None else own

    def _unchanged(self, repeat: int, steps: int, of_validation: bool) -> TrialEnd | None:
        """Return the end of the unchanged training; of a repeat that was not made, the first."""
        event = self._events.get((UNCHANGED, repeat))
        if repeat and event is not None:
            end = self._read(event.folder, None, steps, repeat, of_validation)
            if end is not None:
                return end
        return self._read("", self._run, steps, 0, of_validation)

    def _end(self, event: CureTried, steps: int) -> TrialEnd | None:
        by_validation = self._is_by_validation(event.trial)
        return self._read(event.folder, None, steps, event.repeat, by_validation)

    def _read(
        self, folder: str, run: Run | None, steps: int, repeat: int, of_validation: bool
    ) -> TrialEnd | None:
        if folder and self._run.path is None:
            return None
        key = folder, min(steps, self._length), of_validation
        if key not in self._known:
            run = _load(Path(self._run.path or "", folder)) if run is None else run
            self._known[key] = (
                None if run is None else _end(repeat, run, steps, of_validation=of_validation)
            )
        return self._known[key]


def _gain(name: str, end: TrialEnd, reference: TrialEnd) -> float:
    """Return the share by which a loss ends lower than without the change, from -1 to 1.

    Losses of another scale are compared by the share of their start that is left. A training that
    breaks counts as one that learned nothing, and as worse than any that does not break.
    """
    if not math.isfinite(end.level):
        return -1.0 if math.isfinite(reference.level) else 0.0
    if not math.isfinite(reference.level):
        return max(1.0 - end.share(end.start), -1.0)
    own, other = end.level, reference.level
    if cause_of(name).rescales:
        own, other = end.share(end.start), reference.share(reference.start)
    if min(own, other) < 0:  # a loss without a lower bound at zero
        own, other = own / abs(reference.start), other / abs(reference.start)
        return float(np.clip(other - own, -1.0, 1.0))
    return max(1.0 - own / max(other, 1e-30), -1.0)


def _noise(ends: Sequence[TrialEnd]) -> float:
    """Return the spread between repeats over their level; divergence is no part of it."""
    levels = [end.level for end in ends if math.isfinite(end.level)]
    middle = float(np.median(levels)) if levels else 0.0
    near = [level for level in levels if level <= _DIVERGED * middle]
    if len(near) < 2 or middle <= 0:
        return 0.0
    return float(np.std(near, ddof=1)) / middle


def _end(repeat: int, run: Run, steps: int, *, of_validation: bool) -> TrialEnd | None:
    """Return the end of a training after so many steps, or None if it has no loss to judge."""
    from holter.diagnosis.facts import Facts

    facts = Facts(run if steps >= run.steps else run.until(steps - 1))
    outcome = judged(facts)
    bad = None if outcome is None else is_poor(outcome)
    curve = facts.signed_curve
    if isinstance(curve, str) or not len(curve):
        if bad is None:
            return None
        return TrialEnd(repeat, facts.run.steps, math.nan, math.inf, bad)
    broken = outcome is not None and not outcome.finite
    level = math.inf if broken else midmean(curve.part(0.8))
    start = float(curve.values[0])  # before any update
    constant = None if outcome is None else outcome.constant
    validation = facts.validation if of_validation else ""
    if isinstance(validation, str) or not len(validation) or broken:
        return TrialEnd(repeat, facts.run.steps, start, level, bad, constant)
    level = float(np.median(validation.validation[-validation.third :]))
    return TrialEnd(repeat, facts.run.steps, start, level, bad, validation.constant, True)


def _load(path: Path) -> Run | None:
    try:
        run = Run.load(path)
    except HolterError:
        return None
    return run if LOSS in run else None
