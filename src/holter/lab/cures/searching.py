"""Search for the smallest change that restores learning: coarse to fine, short to long."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from holter.diagnosis.engine import check
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.cure_causes import Part, cause_of, reference_of, size_of
from holter.diagnosis.facts.cures import (
    EXPERIMENT,
    OF_VALIDATION,
    SHUFFLED,
    Cures,
    Known,
    cures_of,
    is_poor,
    judged,
)
from holter.diagnosis.facts.tried import Effect, TriedChange
from holter.diagnosis.facts.weak import TUNED, is_weak, tells
from holter.lab.changes.learning_rate import rates_times
from holter.lab.cures.library import FURTHER, is_probed, singles, suspicion, swaps
from holter.lab.writing import Lab
from holter.record import Run
from holter.record.errors import HolterError
from holter.record.events import CureTried, ExperimentMade, NotApplicable, OutOfTime
from holter.record.findings import Confidence, Severity
from holter.record.signals import CURE_LOSS, LOSS
from holter.record.trials import UNCHANGED, TrialKind, TrialName

_REPEATS = 3  # of the unchanged training and of a cure, each with other random numbers
_SHORT = 4  # a short trial has so many times fewer steps
_LEAST = 40  # steps of a short trial
_SHORT_SHARE = 0.5  # of the time that is left: the other half is for what helps
_BEYOND = 1.3  # times the step of a failure that a trial goes
_CURVE = 200  # points of a loss curve in the run
_CANDIDATES = 3  # cures that are confirmed at most
_MODEL = str(TrialName(TrialKind.REFERENCE_MODEL))
_PROLONGED = 6  # short trials that are repeated at full length at most, if any helps


@dataclass(frozen=True, slots=True)
class CureTrial:
    """A training to repeat: under which change, with which random numbers, how long."""

    trial: str
    repeat: int
    steps: int


@dataclass(frozen=True, slots=True)
class Pace:
    """What a trial takes: seconds until its first step, and for each step."""

    start: float
    step: float

    def seconds(self, steps: int) -> float:
        """Return what a trial of so many steps takes."""
        return self.start + steps * self.step


class Bench(Protocol):
    """Where trials are run: a script in processes of its own, or a setup in this one."""

    jobs: int

    def probe(self, trials: Sequence[str]) -> set[str] | None:
        """Return which changes have something to alter in the training; None if unknown."""

    def run(self, trials: Sequence[CureTrial], until: float) -> Iterator[CureTried]:
        """Run trials, as many at a time as there are jobs; begin none that would end too late."""


class Search:
    """The trials on one run, and what they have shown so far.

    Trials that the run holds already are not made again: a search that was interrupted goes on
    where it stopped.
    """

    def __init__(
        self, bench: Bench, lab: Lab, pace: Pace, *, seconds: float, tell: Callable[[str], None]
    ) -> None:
        self._bench, self._lab, self._pace, self._tell = bench, lab, pace, tell
        self._began = time.monotonic()
        self._until = self._began + seconds
        self._run = Run.load(lab.path)
        self._facts = Facts(self._run)
        self._length = _length(self._facts)
        self._planned = 0
        self._made = 0
        self._untried: dict[str, None] = {}
        self._ends: Known = {}
        self._curves = set(self._run[CURE_LOSS]) if CURE_LOSS in self._run else set[str]()

    def search(self) -> None:
        """Try changes until a cure is confirmed, all are tried, or the time is over."""
        outcome = judged(self._facts)
        poor = outcome is not None and is_poor(outcome)
        weak = outcome is not None and is_weak(outcome)
        suspects = [] if poor or LOSS not in self._run else self._suspects()
        if LOSS not in self._run or (outcome is None and not suspects):
            why = "whether the training failed cannot be judged from its loss"
            self._lab.event(NotApplicable(EXPERIMENT, why, (CURE_LOSS.name,)))
            return
        self._write_curve(UNCHANGED, 0, self._run)
        self._run = Run.load(self._lab.path)
        if not (poor or weak or suspects):
            return
        try:
            if poor:
                self._try()
            elif suspects:
                self._attempt(suspects, self._length, (0, 1))
                self._repeat(UNCHANGED, 1)
            if weak:
                self._improve(predicts=outcome is not None and outcome.constant is not None)
        except KeyboardInterrupt:
            self._tell("interrupted; the results so far are kept")
        cures = self._graded()
        for trial in self._untried:
            if trial not in cures.tried:
                self._lab.event(OutOfTime(EXPERIMENT, trial))
        self._lab.event(ExperimentMade(EXPERIMENT, time.monotonic() - self._began))
        self._lab.clear()

    def _try(self) -> None:
        findings = check(self._run).findings
        every = singles(self._facts, self._length)
        suspected = {trial: suspicion(trial, findings) for trial in every}
        short = self._short()
        self._announce(len(every) + len(swaps()), short)
        every = self._altering(every)
        self._repeat(UNCHANGED, 1)
        for confidence in sorted(Confidence, reverse=True):
            self._attempt([t for t in every if suspected[t] == confidence], self._length)
            self._confirm()
            if self._cure is not None:
                break
        if self._cure is None:
            self._attempt(swaps(), short)
        elif suspected.get(self._cure.name) == Confidence.CERTAIN:
            return
        smaller = [t for t in every if self._cure is None or size_of(t) < size_of(self._cure.name)]
        smaller = _localised(smaller, self._graded())
        self._attempt(smaller, short, share=_SHORT_SHARE)
        self._prolong([*smaller, *swaps()])
        self._confirm()
        if self._cure is None:
            self._combine()
            self._confirm()
        if self._cure is None:
            self._confirm(swapped=True)
        if self._cure is None:
            self._extend(every)
            self._confirm()
        if self._cure is None and str(self._facts.run_outcome.state) in OF_VALIDATION:
            self._control()

    def _control(self) -> None:
        """Train with shuffled labels, which must not be learned as well as the true ones."""
        self._attempt([SHUFFLED], self._length)
        if self._effect(SHUFFLED) in (Effect.NONE, Effect.HELPS, Effect.CURES):
            self._repeat(UNCHANGED, *range(1, _REPEATS))
            self._repeat(SHUFFLED, *range(1, _REPEATS))

    def _improve(self, *, predicts: bool) -> None:
        """Look for a change with which a training that learned a part learns far more.

        Only what ends far below the unchanged training is compared with what tuning gives. A
        reference model is fair where outputs predict targets: where they are distances or scores,
        it may lower a loss by outputs that the model rightly cannot have.
        """
        by_validation = not isinstance(self._facts.validation, str)
        every = [_MODEL] if predicts else []
        every += singles(self._facts, self._length)
        told = [trial for trial in every if tells(trial, by_validation=by_validation)]
        self._announce(len(told) + len(TUNED), self._length)
        told = self._altering(told)
        self._repeat(UNCHANGED, 1)
        whole = len(told) * self._pace.seconds(self._length) / self._bench.jobs
        if whole <= _SHORT_SHARE * (self._until - time.monotonic()):
            self._attempt(told, self._length)
        else:
            self._attempt(told, self._short(), share=_SHORT_SHARE)
            self._prolong(told)
        for _ in range(_CANDIDATES):
            cures = self._graded()
            found = next((c for c in cures.improving if len(c.ends) < _REPEATS), None)
            if found is None or cures.improvement is not None:
                break
            self._attempt(TUNED, self._length)
            if found.name in {change.name for change in self._graded().improving}:
                self._repeat(UNCHANGED, *range(1, _REPEATS))
                self._repeat(found.name, *range(1, _REPEATS))
        if predicts and self._graded().improvement is None:
            self._control()

    def _suspects(self) -> list[str]:
        """Return the changes that would confirm what rules have found in a training.

        Of one that learned all there is to learn, or that cannot be judged, no other is tried.
        """
        findings = [
            finding
            for finding in check(self._run).findings
            if finding.confidence >= Confidence.LIKELY
            and finding.severity >= Severity.WARNING
            and not finding.preview
        ]
        every = singles(self._facts, self._length)
        return [trial for trial in every if suspicion(trial, findings) >= 0]

    def _altering(self, trials: list[str]) -> list[str]:
        """Leave out changes that have nothing to alter, as a few steps with all of them tell."""
        known = {event.what.trial for event in self._run.events_of(CureTried)}
        probed = [trial for trial in trials if is_probed(trial) and trial not in known]
        altering = self._bench.probe(probed) if probed else None
        idle = set() if altering is None else set(probed) - altering
        for trial in idle:
            self._lab.event(CureTried(trial, 0, "", self._length, 0.0, 0))
        return [trial for trial in trials if trial not in idle]

    def _extend(self, every: Sequence[str]) -> None:
        """Try at full length what a swap that restores learning, or nothing else, leaves open."""
        swapped = {change.cause.part for change in self._graded().swaps}
        if Part.OPTIMIZER in swapped:
            self._attempt([str(rates_times(factor).id) for factor in FURTHER], self._length)
        if not self._graded().cures:
            open_parts = [t for t in every if not swapped or cause_of(t).part in swapped]
            active = (Effect.NONE, Effect.HELPS, Effect.WORSE)
            self._attempt([t for t in open_parts if self._effect(t) in active], self._length)

    @property
    def _cure(self) -> TriedChange | None:
        return self._graded().smallest

    def _announce(self, count: int, short: int) -> None:
        whole = self._pace.seconds(self._length)
        most = count * self._pace.seconds(short) + (2 * _REPEATS + 2) * whole
        most /= self._bench.jobs
        left = self._until - time.monotonic()
        self._planned = count
        self._tell(
            f"trying up to {count} changes: estimated {min(most, left):.0f} s, at most {left:.0f} s"
        )

    def _short(self) -> int:
        """Return the steps of a short trial; all if most of a trial is its start."""
        if self._pace.start > self._pace.seconds(self._length) / 2:
            return self._length
        return min(max(self._length // _SHORT, _LEAST), self._length)

    def _attempt(
        self,
        trials: Sequence[str],
        steps: int,
        repeats: Sequence[int] = (0,),
        *,
        share: float = 1.0,  # of the time that is left
    ) -> None:
        known = {
            (event.what.trial, event.what.repeat)
            for event in self._run.events_of(CureTried)
            if event.what.steps >= steps or not event.what.altered
        }
        wanted = [
            CureTrial(trial, repeat, steps)
            for trial in self._with_references(trials)
            for repeat in repeats
            if (trial, repeat) not in known
        ]
        self._untried |= dict.fromkeys(t.trial for t in wanted if t.trial in trials)
        now = time.monotonic()
        for done in self._bench.run(wanted, now + share * (self._until - now)):
            self._untried.pop(done.trial, None)
            self._lab.event(done)
            self._made += 1
            self._lab.begin(f"cures · {self._made} trials, {done.trial}")
            if not done.failed:
                self._write_curve(done.trial, done.repeat, _loaded(self._lab.path, done))
        self._run = Run.load(self._lab.path)

    def _with_references(self, trials: Sequence[str]) -> Iterator[str]:
        """Yield each trial after the one that it is compared with, if that is one of its own."""
        for trial in trials:
            if trial != UNCHANGED and (reference := reference_of(trial)) != UNCHANGED:
                yield reference
            yield trial

    def _repeat(self, trial: str, *repeats: int) -> None:
        self._attempt([trial], self._length, repeats)

    def _prolong(self, every: Sequence[str]) -> None:
        """Repeat at full length what helps after a short time."""
        helped = [trial for trial in every if self._effect(trial) is Effect.HELPS]
        if helped:
            gains = self._graded().tried
            most = sorted(helped, key=lambda trial: -gains[trial].gain)[:_PROLONGED]
            self._attempt([trial for trial in helped if trial in most], self._length)

    def _combine(self) -> None:
        """Try the two changes together that help most, if they act on different parts."""
        tried = self._graded().tried.values()
        helping = [each for each in tried if each.effect is Effect.HELPS and not each.cause.is_swap]
        helping.sort(key=lambda each: -each.gain)
        for other in helping[1:]:
            if other.cause.part is not helping[0].cause.part:
                pair = sorted((helping[0].name, other.name), key=size_of)
                self._attempt([" and ".join(pair)], self._length)
                return

    def _confirm(self, *, swapped: bool = False) -> None:
        """Repeat the smallest cures with other random numbers."""
        for _ in range(_CANDIDATES):
            candidate = self._unconfirmed(swapped=swapped)
            if candidate is None:
                return
            self._repeat(UNCHANGED, *range(1, _REPEATS))
            self._repeat(candidate.name, *range(1, _REPEATS))
            if self._unconfirmed(swapped=swapped) is candidate:
                return  # out of time

    def _unconfirmed(self, *, swapped: bool) -> TriedChange | None:
        """Return the smallest cure, or swap, that is not confirmed; None if a smaller one is."""
        cures = self._graded()
        found = next(iter(cures.swaps if swapped else cures.cures), None)
        return None if found is None or len(found.ends) >= _REPEATS else found

    def _effect(self, trial: str) -> Effect | None:
        change = self._graded().tried.get(trial)
        return None if change is None else change.effect

    def _graded(self) -> Cures:
        cures = cures_of(self._run, self._ends)
        assert cures is not None
        return cures

    def _write_curve(self, trial: str, repeat: int, run: Run | None) -> None:
        owner = trial if not repeat else f"{trial}, repeat {repeat}"
        if run is None or LOSS not in run or owner in self._curves:
            return
        self._curves.add(owner)
        series = max(run[LOSS].values(), key=len)
        every = max(-(-len(series) // _CURVE), 1)
        for step, value in zip(series.steps[::every], series.values[::every], strict=True):
            self._lab.write(CURE_LOSS, [float(value)], trial=owner, first=int(step))


def _length(facts: Facts) -> int:
    """Return the steps after which trainings are compared: all, or until after the failure."""
    outcome, steps = judged(facts), facts.run.steps
    if outcome is None or outcome.onset is None:
        return steps
    return min(steps, max(int(_BEYOND * outcome.onset), outcome.onset + 20, _LEAST))


def _localised(trials: Sequence[str], cures: Cures) -> list[str]:
    """Put changes to the parts first whose swap helped."""
    good = (Effect.CURES, Effect.HELPS)
    parts = {
        change.cause.part
        for change in cures.tried.values()
        if change.cause.is_swap and change.effect in good
    }
    return sorted(trials, key=lambda trial: cause_of(trial).part not in parts)


def _loaded(path: Path, done: CureTried) -> Run | None:
    try:
        return Run.load(path / done.folder)
    except HolterError:
        return None
