"""An investigation by reruns: the whole script runs again for each answer.

Nothing has to be extracted or restored: environments, buffers, updates by hand and tensors outside
of modules are what the script makes them. It takes a run of the script for each answer, and a
script that draws the same random numbers in every run.
"""

import math
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from holter.diagnosis.facts.accumulations import accumulation_grew
from holter.diagnosis.facts.replayed_changes import (
    SLOWER,
    SMALLER_STEPS,
    STEP_SKIPPED,
    ChangeFamily,
    CureOutcome,
    Normal,
    ReplayedChange,
    concluded,
    judged,
)
from holter.diagnosis.facts.replays import (
    NOT_REPRODUCED,
    Replayed,
    Triage,
    highest_before,
    replayed,
)
from holter.lab.birth.guards import OperationGuard
from holter.lab.changes.gradients import ACCUMULATION_DIVIDED
from holter.lab.changes.learning_rate import RATES_HELD
from holter.lab.replay.departing import Departure, changed_since, same_bits
from holter.lab.replay.failing import (
    BEYOND,
    band_before,
    band_of_beginning,
    band_of_spike,
    is_failure,
    onset,
    peak_before,
    rises,
)
from holter.lab.replay.investigating import NO_FLOOR
from holter.lab.replay.outcomes import ReplayTrial, pieces
from holter.lab.replay.rates import earlier_rate
from holter.lab.replay.reproducing import EXACT, REPRODUCED, Reproduction, near
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
from holter.record.signals import REPLAY_LOSS, REPLAY_NORM
from holter.record.trials import UNCHANGED, TrialKind, TrialName, parts
from holter.scripts.cures.bench import ScriptBench
from holter.scripts.cures.trial import Command, ScriptTrial, folder_name, run_trial
from holter.scripts.reruns.attending import Attendant, Attended, Rerun, attended
from holter.scripts.reruns.changing import names
from holter.scripts.reruns.choosing import HoldableNumber, earliest, factors, holdable, set_back
from holter.scripts.reruns.holding import HeldNumber
from holter.scripts.reruns.outcomes import before, last_steps, losses
from holter.watching.blackbox.capture import Capture

_SLACK, _LEAST = 4.0, 60.0  # times the first run, and seconds, that a rerun may take at least
_LEAD = 16  # steps before the alarm that are looked at, at least
_HOLDING_SECONDS = 120.0  # in which numbers are held, after a replay
_CONFIRMING_SECONDS = 90.0  # in which cures run to the end of the script
_CONFIRMED = 4  # cures that do, at most
_NEVER = sys.maxsize
_FROM_THE_START = (TrialKind.CLIP, TrialKind.LEARNING_RATE, TrialKind.LINE_SEARCH)
_LATE = 8  # losses at the end of a script
_ANOTHER_ORDER = 10.0  # times the highest loss before the failure, at which a training has failed
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
        self._in_process = False  # where the data are fetched when a change is tried
        self._trials: dict[str, ReplayTrial] = {}  # that were made under a change
        self._measures: dict[str, WindowMeasure] = {}  # of all changes
        self._orders: dict[str, Rerun] = {}  # by which they were made

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
        about = self._go_on_with(replay)
        set_badly = replay.birth is not None and replay.birth.kind == "bad setting"
        values = self._following("setting" if set_badly else "input")
        self._in_process = not set_badly
        with self._started():
            order = Rerun(self._first, self._last, traced=about.failing, in_process=True)
            seen = self._followed(values) if set_badly else self._play("traced", order)[1]
            if self._departs() and not set_badly:  # workers draw random numbers of their own
                self._in_process, values = False, replace(values, in_process=False)
                seen = self._play("traced", replace(order, in_process=False))[1]
            if departs := self._departs():
                yield f"{departs}: no origin found"
                return
            found, before = seen.birth, replay.birth
            if not set_badly and (found is None or found.is_from_outside or found.is_unexplained):
                yield "no torch operation since the previous update produced it"
                found = self._followed(values).birth
            if found is None or before is None:
                yield "no line of the script was found to produce it"
                return
            found = replace(found, before_step=True)
            if before.samples or not found.samples:  # those of the batch in which it was met
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

    def hold_numbers(self, replay: Replayed) -> Iterator[str]:
        """Hold each number that the script moves, on a failure that a replay has reproduced."""
        self._go_on_with(replay)
        with self._started():
            began = time.monotonic()
            _, seen = self._play(UNCHANGED, self._unchanged_run(), records=False)
            self._seconds = time.monotonic() - began
            if departs := self._departs():
                yield f"{departs}: its numbers are not held constant"
                return
            yield from self._held(seen, began + _HOLDING_SECONDS)
            yield from self._confirmed(began + _HOLDING_SECONDS + _CONFIRMING_SECONDS)

    def _confirmed(self, until: float) -> Iterator[str]:
        """Run the script to its end under the least cure; under the next if that fails later.

        A smaller step may only delay a failure. As in a fixed script, steps are smaller from the
        first one on. Nothing is taken back unless another change is left. A number that is held is
        the cause whether that value lasts or a lower one is needed.
        """
        assert self._run.path is not None
        replay = replayed(Run.load(self._run.path))
        delayed: list[ChangeTried] = []
        for cure in replay.ranked_cures[:_CONFIRMED] if replay is not None else ():
            if cure.family in (ChangeFamily.SKIP, ChangeFamily.BATCH):
                return  # a smaller step says more than that there is another batch
            if (
                cure.family not in SMALLER_STEPS
                or time.monotonic() + self._recorded_seconds > until
            ):
                break  # what was not tried to the end stands
            order = self._orders.get(cure.name, Rerun(self._first, self._last, cure.name))
            order = replace(order, last=_NEVER)
            if parts(cure.name)[0].kind in _FROM_THE_START:
                order = replace(order, begins=0)
            try:
                trial, seen = self._play(cure.name, order, records=False)
            except (HolterError, KeyError, ValueError):  # too slow, or not a change of reruns
                break
            if not seen.altered:
                break
            measure = trial.measure(self._failing, self._onset)
            fails = self._fails_later(trial, measure)
            if not fails:
                yield f"{cure.name}: lasts to the end of the script"
                break
            yield f"{cure.name}: only delays the failure ({fails})"
            delayed.append(ChangeTried(cure.name, "", replace(measure, error=fails)))
        else:
            return
        for each in delayed:
            self._lab.event(each)

    def _fails_later(self, trial: ReplayTrial, measure: WindowMeasure) -> str:
        """Say how a training fails later under a change, or return ""."""
        if measure.error or measure.nonfinite_at is not None:
            return measure.error or f"not finite at step {measure.nonfinite_at}"
        losses = trial.like(self._failing).losses
        if not losses or not math.isfinite(self._band.median):
            return ""
        late = statistics.median(losses[-_LATE:])
        highest = max(self._band.ceiling(), highest_before(self._run, self._onset) or 0.0)
        return f"the loss ends at {late:.3g}" if late > _ANOTHER_ORDER * abs(highest) else ""

    def _go_on_with(self, replay: Replayed) -> Reproduced:
        about = replay.about
        self._failing, self._onset, self._unchanged = about.failing, about.onset, about.unchanged
        self._band, self._peak = replay.band, about.normal_peak
        self._measures = dict(replay.measures)
        return about

    def _departs(self) -> str:
        """Say from which step on a rerun differs from the recording before the failure, or ""."""
        recorded = losses(self._run)
        differ = [
            step
            for step in recorded.keys() & self._all.keys()
            if step < self._failing and not same_bits(self._all[step], recorded[step])
        ]
        return f"the script deviates from step {min(differ)} on" if differ else ""

    def _unchanged_run(self) -> Rerun:
        alarm = self._capture.alarm.step
        return Rerun(self._first, self._last, surveyed=min(earliest(alarm), self._first))

    def _held(self, seen: Attended, until: float) -> Iterator[str]:
        """Hold one number after the other, as long as there is time."""
        changed = {each.number: each.series for each in seen.numbers}
        for number in holdable(changed, self._first, self._onset, self._failing):
            if time.monotonic() + self._seconds > until:
                break
            tried = self._hold(number)
            yield f"{tried.name}: {tried.outcome} ({tried.says})"
            if number.earlier is not None and self._is_later(tried):
                tried = self._hold(number.earlier)
                yield f"{tried.name}: {tried.outcome} ({tried.says})"
        if self._capture.alarm.kind in ("spike", "growth"):
            yield from self._lowered(seen, until)
        if self._birth is None or not self._birth.is_singular:
            return
        for number in set_back(changed, self._onset, self._failing):
            if time.monotonic() + self._seconds > until:
                break
            name = str(TrialName(TrialKind.COUNTER_KEPT, number.name))
            tried = self._try(name, "", begins=number.begins, held=number.held)
            yield f"{tried.name}: {tried.outcome} ({tried.says})"

    def _hold(self, number: HoldableNumber) -> ReplayedChange:
        kind = TrialKind.COUNTER_HELD if number.counts else TrialKind.HELD
        name = str(TrialName(kind, number.name))
        return self._try(name, "", begins=number.begins, held=number.held)

    def _is_later(self, tried: ReplayedChange) -> bool:
        """Whether a change that does not cure the failure delays it."""
        then, now = self._unchanged.nonfinite_at, self._measures[tried.name].nonfinite_at
        return tried.outcome is CureOutcome.DOES_NOT and then is not None and (now or 0) > then

    def _lowered(self, seen: Attended, until: float) -> Iterator[str]:
        """Put factors that are a little above 1 as far below it, from early on."""
        for number in factors({each.number: each.series for each in seen.numbers}):
            if time.monotonic() + self._seconds > until:
                break
            name = str(TrialName(TrialKind.FACTOR, number.name))
            tried = self._try(name, "", begins=number.begins, held=number.held)
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
        trial, seen = self._play(UNCHANGED, self._unchanged_run())
        self._seconds = time.monotonic() - began
        yield f"one run up to step {self._last} takes {self._seconds:.2g} s"
        reproduction = self._compare(trial, seen)
        yield reproduction.says
        if reproduction.verdict == NOT_REPRODUCED:
            yield "no change is tried, because it would be tried on a different training"
            return
        if seen.met is not None:
            self._trace(seen.met)
            if self._birth is not None:
                yield self._birth.says
                yield from self._follow_lines(self._birth)
        elif self._later is not None:
            yield from self._trace_end(self._later)
        if self._descends:
            yield NO_FLOOR
        elif ladder and self._fails:
            yield from self._changes(seen, began + seconds)

    def _play(
        self, name: str, order: Rerun, *, records: bool = True
    ) -> tuple[ReplayTrial, Attended]:
        """Run the script once more; return its last steps, and what was seen of them."""
        folder = self._place / folder_name(
            f"{name} {order.first} {order.last} {order.traced or order.values} {order.in_process}",
            0,
        )
        trial = ScriptTrial(self._command, folder, free=(self._place,), attendant=Attendant(order))
        limit = max(_SLACK * min(self._seconds, self._recorded_seconds), _LEAST)
        failed = self._bench.apart(folder.name, run_trial, trial, seconds=limit)
        seen = attended(folder)
        if seen is None:
            raise HolterError(
                f"{self._command.script} could not be run again: {failed or 'it was ended'}."
            )
        played = last_steps(Run.load(folder), seen, order)
        if order.traced is None and not order.values and records:
            for values, signal in ((played.losses, REPLAY_LOSS), (played.norms, REPLAY_NORM)):
                for first, part in pieces(played.steps, values):
                    self._lab.write(signal, part, trial=name, first=first)
        self._all = losses(Run.load(folder))
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
        if alarm.kind == "spike" and seen.first_bad is None:
            earlier = before(self._all, self._first)
            self._band = band_of_spike(trial, failing, self._band, earlier)
        if alarm.kind == "growth" and seen.first_bad is None:
            self._band = band_of_beginning(self._run, failing) or self._band
        rose = alarm.kind in ("spike", "growth") and rises(trial, failing, self._band)
        self._descends = alarm.kind == "descent" and seen.first_bad is None
        self._fails = seen.first_bad is not None or rose or self._descends
        recorded = losses(self._run)
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
        return Rerun(self._first, self._failing, values=kind, in_process=kind == "input")

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

    def _changes(self, seen: Attended, until: float) -> Iterator[str]:
        """Try one change after the other, as long as there is time."""
        late, edits = False, bool(self._run.events_of(WeightsEdited))
        rising = earlier_rate(self._run, self._failing)
        norms, rises = self._norms_before, rising is not None
        grown = accumulation_grew(self._run, self._onset)
        found = names(
            *(self._capture, self._birth, norms),
            edits=edits,
            rises=rises,
            more=grown is not None,
        )
        yield from self._held(seen, (2 * time.monotonic() + until) / 3)
        for name, why_not in found:
            if not why_not and time.monotonic() + self._seconds > until:
                late = True
                continue
            begins = rising.step if rising and name == str(RATES_HELD.id) else None
            if name == str(ACCUMULATION_DIVIDED.id):
                begins = grown
            tried = self._try(name, why_not, begins=begins)
            yield f"{tried.name}: {tried.outcome} ({tried.says})"
        triage = self._triage()
        if triage is not None:
            self._lab.event(
                TriageMade(triage.batch_on_older_weights, triage.older_batch_on_these_weights)
            )
            yield triage.says
        if late:
            yield "not all changes were tried: each needs a run of the script"
            return
        self._lab.event(ChangesTried())
        yield from self._confirmed(max(until, time.monotonic() + _CONFIRMING_SECONDS))

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

    def _try(
        self,
        name: str,
        why_not: str,
        *,
        begins: int | None = None,
        held: tuple[HeldNumber, ...] = (),
    ) -> ReplayedChange:
        measure = WindowMeasure()
        if not why_not:
            skips = (self._onset,) if name == STEP_SKIPPED else ()
            change = UNCHANGED if skips else name
            order = Rerun(self._first, self._last, change, skips, guarded=self._birth)
            order = replace(order, begins=begins, held=held, in_process=self._in_process)
            self._orders[name] = order
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
        highest = highest_before(self._run, self._onset)
        normal = Normal(self._band, self._peak, highest=highest)
        normal = normal.beside(self._unchanged, self._measures)
        return judged(name, measure, self._unchanged, normal, why_not=why_not)
