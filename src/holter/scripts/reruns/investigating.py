"""An investigation by reruns: the whole script runs again for each answer.

Nothing has to be extracted or restored: environments, buffers, updates by hand and tensors outside
of modules are what the script makes them. It takes a run of the script for each answer, and a
script that draws the same random numbers in every run.
"""

import math
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from holter.diagnosis.facts.replayed_changes import (
    SLOWER,
    STEP_SKIPPED,
    CureOutcome,
    Normal,
    ReplayedChange,
    concluded,
    judged,
)
from holter.diagnosis.facts.replays import NOT_REPRODUCED, Replayed, Triage
from holter.lab.birth.guards import OperationGuard
from holter.lab.replay.departing import Departure, changed_since, same_bits
from holter.lab.replay.failing import BEYOND, band_before, is_failure, onset, peak_before, rises
from holter.lab.replay.investigating import EXACT, REPRODUCED, Reproduction, near
from holter.lab.replay.outcomes import ReplayTrial, StepOutcome, pieces
from holter.lab.writing import Lab
from holter.record import Run
from holter.record.births import Birth
from holter.record.errors import HolterError
from holter.record.events import (
    BirthFound,
    ChangesTried,
    ChangeTried,
    ExperimentMade,
    Reproduced,
    TriageMade,
    WeightsEdited,
    WindowMeasure,
)
from holter.record.signals import LOSS, REPLAY_LOSS, REPLAY_NORM
from holter.record.trials import UNCHANGED
from holter.scripts.cures.bench import ScriptBench
from holter.scripts.cures.trial import Command, ScriptTrial, folder_name, run_trial
from holter.scripts.reruns.attending import Attendant, Attended, Rerun, attended
from holter.scripts.reruns.changing import names
from holter.watching.blackbox.capture import Capture

_SLACK, _LEAST = 4.0, 60.0  # times the first run, and seconds, that a rerun may take at least
_LEAD = 16  # steps before the alarm that are looked at, at least
_HOW = "by running the whole script again"


class RerunInvestigation:
    """Investigates a captured failure by running its script again, and records each result."""

    def __init__(
        self, command: Command, run: Run, capture: Capture, lab: Lab, *, later: Capture | None
    ) -> None:
        self._command, self._run, self._capture, self._lab = command, run, capture, lab
        self._later = later  # of what is not finite, after a loss left its course
        self._first = max(min(capture.steps[0].step, capture.alarm.step - _LEAD), 0)
        self._last = capture.alarm.step + BEYOND
        self._seconds = math.inf  # of a rerun
        self._birth: Birth | None = None
        self._trials: dict[str, ReplayTrial] = {}  # that were made under a change
        self._measures: dict[str, WindowMeasure] = {}  # of all changes

    def investigate(self, *, seconds: float, ladder: bool = True) -> Iterator[str]:
        """Yield a line for the user after each part; changes are tried for so many seconds."""
        began = time.monotonic()
        with self._started():
            yield from self._investigated(seconds, ladder=ladder)
        self._lab.event(ExperimentMade("replay", time.monotonic() - began))

    def find_origin(self, replay: Replayed, *, ladder: bool = True) -> Iterator[str]:
        """Find what produced the value that a reproduced step was given, or found in a weight.

        It is an operation between the updates of the script: a batch that is made, a weight that
        is written to. It is guarded then, if there is a guard for it.
        """
        about = replay.about
        self._failing, self._onset, self._unchanged = about.failing, about.onset, about.unchanged
        self._band, self._peak = replay.band, about.normal_peak
        set_badly = replay.birth is not None and replay.birth.kind == "bad setting"
        values = self._following("setting" if set_badly else "input")
        with self._started():
            order = Rerun(self._first, self._last, traced=about.failing)
            seen = self._followed(values) if set_badly else self._play("traced", order)[1]
            recorded = _losses(self._run)
            differ = [
                step
                for step in recorded.keys() & self._all.keys()
                if step < about.failing and not same_bits(self._all[step], recorded[step])
            ]
            if differ:
                yield f"the script runs in another way from step {min(differ)} on: no origin found"
                return
            found, before = seen.birth, replay.birth
            if not set_badly and (found is None or found.is_from_outside):
                yield "no operation of torch since the update before produced it"
                found = self._followed(values).birth
            if found is None or before is None:
                yield "no line of the script was seen to produce it"
                return
            found = replace(found, before_step=True)
            if not found.samples:  # those of the batch in which it was met
                found = replace(
                    found,
                    samples=before.samples,
                    sample_count=before.sample_count,
                    indices=before.indices,
                )
            self._birth = found
            self._lab.event(BirthFound(found, about.failing))
            yield found.says
            if ladder and OperationGuard.exists_for(found):
                tried = self._try(str(OperationGuard(found).change.id), "")
                yield f"{tried.name}: {tried.outcome} ({tried.says})"

    @contextmanager
    def _started(self) -> Iterator[None]:
        with tempfile.TemporaryDirectory(prefix="holter-") as place:
            self._place = Path(place)
            with ScriptBench(self._command, self._place) as bench:
                self._bench = bench
                yield

    def _investigated(self, seconds: float, *, ladder: bool) -> Iterator[str]:
        began = time.monotonic()
        trial, seen = self._play(UNCHANGED, Rerun(self._first, self._last))
        self._seconds = time.monotonic() - began
        yield f"one run up to step {self._last} takes {self._seconds:.2g} s"
        reproduction = self._compare(trial, seen)
        yield reproduction.says
        if reproduction.verdict == NOT_REPRODUCED:
            yield "no change is tried: it would be tried on another training"
            return
        if seen.met is not None:
            self._trace(seen.met)
            if self._birth is not None:
                yield self._birth.says
                yield from self._follow_lines(self._birth)
        elif self._later is not None:
            yield from self._trace_end(self._later)
        if ladder and self._fails:
            yield from self._changes(began + seconds)

    def _play(
        self, name: str, order: Rerun, *, records: bool = True
    ) -> tuple[ReplayTrial, Attended]:
        """Run the script once more; return its last steps, and what was seen of them."""
        folder = self._place / folder_name(
            f"{name} {order.first} {order.traced or order.values}", 0
        )
        trial = ScriptTrial(self._command, folder, free=(self._place,), attendant=Attendant(order))
        limit = max(_SLACK * min(self._seconds, self._recorded_seconds), _LEAST)
        failed = self._bench.apart(folder.name, run_trial, trial, seconds=limit)
        seen = attended(folder)
        if seen is None:
            raise HolterError(
                f"{self._command.script} could not be run again: {failed or 'it was ended'}."
            )
        played = _steps(Run.load(folder), seen, order)
        if order.traced is None and not order.values and records:
            for values, signal in ((played.losses, REPLAY_LOSS), (played.norms, REPLAY_NORM)):
                for first, part in pieces(played.steps, values):
                    self._lab.write(signal, part, trial=name, first=first)
        self._all = _losses(Run.load(folder))
        return played, seen

    @property
    def _recorded_seconds(self) -> float:
        return self._run.meta.duration or _LEAST

    def _compare(self, trial: ReplayTrial, seen: Attended) -> Reproduction:
        """Compare the rerun with the recording, from the first step of the run on."""
        alarm = self._capture.alarm
        failing = alarm.step if seen.first_bad is None else seen.first_bad
        alike = trial.like(failing)
        self._failing, self._onset = failing, onset(alike, failing)
        self._band = band_before(alike, failing, self._onset)
        self._peak = peak_before(alike, failing, self._onset)
        rose = alarm.kind == "spike" and rises(trial, failing, self._band)
        self._fails = seen.first_bad is not None or rose
        recorded = _losses(self._run)
        steps = [step for step in sorted(recorded.keys() & self._all.keys()) if step <= alarm.step]
        pairs = [(step, self._all[step], recorded[step]) for step in steps]
        differ = [step for step, now, then in pairs if not same_bits(now, then)]
        if pairs and not differ:
            verdict = EXACT
        elif self._fails and pairs and all(near(now, then) for _, now, then in pairs):
            verdict = REPRODUCED
        else:
            verdict = NOT_REPRODUCED
        departs = verdict == NOT_REPRODUCED and bool(differ)
        found = Reproduction(
            verdict,
            len(pairs) - len(differ),
            len(pairs),
            repeatable=True,
            departure=Departure(differ[0], "", tuple(self._suspects())) if departs else None,
            ended=seen.error,
            how=_HOW,
        )
        self._unchanged = trial.measure(failing, self._onset)
        rows = zip(alike.steps, alike.norms, strict=True)
        self._norms_before = [norm for step, norm in rows if step < self._onset]
        self._lab.event(
            Reproduced(
                verdict=found.verdict,
                says=found.says,
                failing=failing,
                onset=self._onset,
                state_step=self._first,
                alarm=alarm.kind,
                same=found.same,
                compared=found.compared,
                repeatable=found.repeatable,
                normal_loss=self._band.median,
                normal_spread=self._band.spread,
                normal_peak=self._peak,
                unchanged=self._unchanged,
                departs_at=None if found.departure is None else found.departure.step,
                suspects=() if found.departure is None else found.departure.suspects,
                is_whole=True,
            )
        )
        return found

    def _suspects(self) -> Iterator[str]:
        yield from changed_since(self._run)
        yield "random numbers that differ in every run: the script sets no seed"
        yield "files, times or processes that the script reads"
        yield "a nondeterministic kernel, or the hardware"

    def _trace(self, step: int) -> None:
        """Find the operation that gave the first value that is not finite."""
        order = Rerun(self._first, self._last, traced=step)
        _, seen = self._play("traced", order)
        self._birth = seen.birth
        if self._birth is not None:
            self._lab.event(BirthFound(self._birth, self._failing))

    def _following(self, kind: str) -> Rerun:
        """Return a rerun that follows the lines of the script to an "input" or a "setting"."""
        return Rerun(self._first, self._failing, values=kind)

    def _followed(self, order: Rerun) -> Attended:
        """Follow the lines of the script; nothing is found where that takes too long."""
        try:
            return self._play("values", order, records=False)[1]
        except HolterError:
            return Attended()

    def _follow_lines(self, met: Birth) -> Iterator[str]:
        """Find the line that made what the failing step was given, if it was given it."""
        if not met.has_origin:
            return
        kind = "setting" if met.kind == "bad setting" else "input"
        seen = self._followed(self._following(kind))
        if seen.birth is not None:
            told = replace(seen.birth, samples=met.samples, sample_count=met.sample_count)
            self._birth = replace(told, indices=met.indices)
            self._lab.event(BirthFound(self._birth, self._failing))
            yield self._birth.says

    def _trace_end(self, later: Capture) -> Iterator[str]:
        """Find the operation in which a training that left its course stopped being finite."""
        first, last = later.steps[0].step, later.alarm.step + BEYOND
        _, seen = self._play(UNCHANGED, Rerun(first, last), records=False)
        if seen.met is None or seen.first_bad is None:
            return
        _, traced = self._play("traced", Rerun(first, last, traced=seen.met))
        if traced.birth is not None:
            self._lab.event(BirthFound(traced.birth, seen.first_bad))
            yield traced.birth.says

    def _changes(self, until: float) -> Iterator[str]:
        """Try one change after the other, as long as there is time."""
        late = False
        edits = bool(self._run.events_of(WeightsEdited))
        found = names(self._capture, self._birth, self._norms_before, edits=edits)
        for name, why_not in found:
            if not why_not and time.monotonic() + self._seconds > until:
                late = True
                continue
            tried = self._try(name, why_not)
            yield f"{tried.name}: {tried.outcome} ({tried.says})"
        triage = self._triage()
        if triage is not None:
            self._lab.event(
                TriageMade(triage.batch_on_older_weights, triage.older_batch_on_these_weights)
            )
            yield triage.says
        if late:
            yield "not all changes were tried: each takes a run of the script"
        else:
            self._lab.event(ChangesTried())

    def _triage(self) -> Triage | None:
        """Find out whether it is the data or the state, by two trials; None without them.

        After a smaller learning rate the same batch meets other weights; after a step that is
        skipped other batches meet the same weights.
        """
        slower, skipped = self._trials.get(SLOWER), self._trials.get(STEP_SKIPPED)
        if slower is None or skipped is None or self._onset not in slower.steps:
            return None
        outcome = slower.outcomes[slower.steps.index(self._onset)]
        measure = skipped.measure(self._failing, self._onset)
        healed, _ = concluded(measure, self._unchanged, Normal(self._band, self._peak))
        return Triage(is_failure(outcome, self._band), healed is not CureOutcome.CURES)

    def _try(self, name: str, why_not: str) -> ReplayedChange:
        measure = WindowMeasure()
        if not why_not:
            skips = (self._onset,) if name == STEP_SKIPPED else ()
            change = UNCHANGED if skips else name
            order = Rerun(self._first, self._last, change, skips, guarded=self._birth)
            try:
                trial, seen = self._play(name, order)
            except HolterError as error:  # the script does not end under this change
                trial, seen, why_not = ReplayTrial((), ()), Attended(), str(error).rstrip(".")
            if seen.altered:
                self._trials[name] = trial
                measure = trial.measure(self._failing, self._onset)
            why_not = why_not or ("" if seen.altered else "it has nothing to change in these steps")
        self._lab.event(ChangeTried(name, why_not, measure))
        self._measures[name] = measure
        normal = Normal(self._band, self._peak).beside(self._unchanged, self._measures)
        return judged(name, measure, self._unchanged, normal, why_not=why_not)


def _losses(run: Run) -> dict[int, float]:
    """Return the recorded loss of each step."""
    if LOSS not in run:
        return {}
    return {
        int(step): float(loss)
        for series in run[LOSS].values()
        for step, loss in zip(series.steps, series.values, strict=True)
    }


def _steps(run: Run, seen: Attended, order: Rerun) -> ReplayTrial:
    """Return the last steps of a rerun, without those that it skipped."""
    rows: list[tuple[int, StepOutcome]] = []
    for kind, series in enumerate(run[LOSS].values() if LOSS in run else ()):
        for number, loss in zip(series.steps, series.values, strict=True):
            step = int(number)
            if step >= order.first and step not in order.skips:
                norm = seen.norms.get(str(step), 0.0)
                bad = step == seen.first_bad
                rows.append((step, StepOutcome(float(loss), norm, bad, kind)))
    rows.sort(key=lambda row: row[0])
    steps, outcomes = zip(*rows, strict=True) if rows else ((), ())
    return ReplayTrial(tuple(steps), tuple(outcomes), seen.error)
