"""An investigation: a captured failure is reproduced, traced to its birth, run under changes."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from torch import Tensor

from holter.diagnosis.facts.replayed_changes import (
    ChangeFamily,
    CureOutcome,
    Normal,
    ReplayedChange,
    family_of,
    judged,
)
from holter.diagnosis.facts.replays import NOT_REPRODUCED, Triage, highest_before, replayed
from holter.lab import birth
from holter.lab.batches import size, tensors
from holter.lab.birth import Birth
from holter.lab.inapplicable import InapplicableError
from holter.lab.replay.dataset_indices import placed
from holter.lab.replay.departing import departure, listed, same_bits
from holter.lab.replay.failing import (
    BEYOND,
    band_of_beginning,
    band_of_spike,
    fatal_before,
    locate,
    peak_before,
    rises,
)
from holter.lab.replay.gathering import Gathered
from holter.lab.replay.loops import delivered_by_loop
from holter.lab.replay.outcomes import ReplayTrial, pieces
from holter.lab.replay.planning import PlannedReplay, planned_replays
from holter.lab.replay.reproducing import EXACT, REPRODUCED, Reproduction, near
from holter.lab.replay.samples import guilty_samples, triage
from holter.lab.replay.window import FailureWindow
from holter.lab.setup import Batch, LossPhase
from holter.lab.sharing import WHOLE
from holter.lab.writing import Lab
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
from holter.record.trials import UNCHANGED
from holter.watching.blackbox.capture import Step

NO_FLOOR = "the loss falls without end: no change is tried, as none could bring it back up"
_ACTING = (
    ChangeFamily.RATE,
    ChangeFamily.CLIP,
    ChangeFamily.PRECISION,
    ChangeFamily.STATE,
)  # tried in pairs, too


class Investigation:
    """Investigates a captured failure, and records each result at once."""

    def __init__(self, window: FailureWindow, lab: Lab, *, records_losses: bool = True) -> None:
        self._window, self._lab, self._records = window, lab, records_losses
        began = time.perf_counter()
        self.plain = window.play(beyond=BEYOND)
        if not self.plain.steps:
            raise HolterError(f"The captured step cannot be run again: {self.plain.error}.")
        self._band = locate(window, self.plain)
        kind = window.capture.alarm.kind
        is_spike = kind in ("spike", "growth")
        if is_spike and self.plain.first_bad is None:
            earlier = window.recorded_before(window.steps[0])
            self._band = band_of_spike(self.plain, window.failing, self._band, earlier)
        if kind == "growth" and self.plain.first_bad is None:
            self._band = band_of_beginning(window.run, window.failing) or self._band
        alike = self.plain.like(window.failing)
        self._peak = peak_before(alike, window.failing, window.onset)
        self.seconds = time.perf_counter() - began
        self._unchanged = self.plain.measure(window.failing, window.onset)
        self._write(UNCHANGED, self.plain)
        self.fails_by_nan = self.plain.first_bad is not None
        rose = is_spike and rises(self.plain, window.failing, self._band)
        self.descends = kind == "descent" and not self.fails_by_nan
        self.fails = self.fails_by_nan or rose or self.descends
        self._birth: Birth | None = None  # once it is traced
        self._measures: dict[str, WindowMeasure] = {}  # of the changes that were tried

    def reproduce(self) -> Reproduction:
        """Run the window again, and compare it with the recording."""
        window, plain = self._window, self.plain
        again = window.play(until=plain.steps[-1])
        totals = [[each.loss for each in trial.outcomes] for trial in (plain, again)]
        repeatable = all(map(same_bits, *totals))
        pairs = self._pairs()
        same = sum(same_bits(loss, recorded) for loss, recorded in pairs)
        fails = self.fails or window.capture.alarm.kind in ("asked", "exception")
        ended = self._ended_early()
        if ended:
            verdict = NOT_REPRODUCED
        elif pairs and same == len(pairs) and repeatable:
            verdict = EXACT
        elif fails and all(near(loss, recorded) for loss, recorded in pairs):
            verdict = REPRODUCED
        else:
            verdict = NOT_REPRODUCED
        found = Reproduction(
            verdict,
            same,
            len(pairs),
            repeatable,
            departure(window, plain) if verdict == NOT_REPRODUCED and repeatable else None,
            ended,
            _edited(window),
            fatal_before(window, plain),
        )
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
                normal_peak=self._peak,
                unchanged=self._unchanged,
                departs_at=None if found.departure is None else found.departure.step,
                tensor="" if found.departure is None else found.departure.tensor,
                suspects=() if found.departure is None else found.departure.suspects,
                edited=window.edits.names,
                fatal_before=found.fatal_before,
                bad=len(window.bad),
            )
        )
        return found

    def _ended_early(self) -> str:
        """Say where the replay ended before the step of the alarm, or return ""."""
        last, alarm = self.plain.steps[-1], self._window.capture.alarm
        if alarm.kind == "exception" or last >= min(alarm.step, self._window.steps[-1].step):
            return ""
        return f"the replay ends after step {last} ({self.plain.error})"

    def trace(self) -> Birth | None:
        """Find the operation that gave the first value that is not finite, or None."""
        if not self.fails_by_nan:
            return None
        window = self._window
        failing = window.at(window.failing)
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
        fetches = self._window.fetches(step)
        batches: list[Batch] = []
        for number, phase in enumerate(self._window.phases(step)):
            gathered = Gathered(phase)
            for place, make in enumerate(given):
                if not number:  # which leaves the random state that the batch had
                    batches.append(make())
                batch = batches[place]
                spoiled = not number and bool(fetches) and not _is_finite(batch)
                again = make if spoiled and _is_finite(fetches[place].batch) else None

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
                    backward_at=phase.backward_at,
                    update=gathered.update if place == len(given) - 1 else gathered.keep,
                )
                if found is not None:
                    if fetches and not _is_finite(fetches[place].batch):
                        found = delivered_by_loop(found, phase.stepped_at)
                    delivered = fetches[place].batch if fetches and fetches[place].whole else None
                    return placed(found, setup, delivered, place=place, of=len(given))
        return None

    def try_changes(self) -> Iterator[ReplayedChange]:
        """Try one change after the other; two together if none of them cures alone."""
        window = self._window
        rows = self.plain.like(window.failing)
        norms = [n for step, n in zip(rows.steps, rows.norms, strict=True) if step < window.onset]
        alone = planned_replays(window, self._birth, norms)
        cured = False
        for place, planned in enumerate(alone):
            if not self._lab.share.holds(place):
                continue
            found = self._taken_over(planned) or self._try(planned)
            cured = cured or found.outcome is CureOutcome.CURES
            yield found
        if self._lab.share != WHOLE:
            return
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
                measure = trial.measure(self._window.failing, self._window.onset)
                self._write(planned.name, trial)
            else:
                why_not = "the step does not call it by itself"
        self._lab.event(ChangeTried(planned.name, why_not, measure))
        return self._judged(planned.name, measure, why_not)

    def _judged(self, name: str, measure: WindowMeasure, why_not: str) -> ReplayedChange:
        self._measures[name] = measure
        highest = highest_before(self._window.run, self._window.onset)
        normal = Normal(self._band, self._peak, highest=highest)
        normal = normal.beside(self._unchanged, self._measures)
        return judged(name, measure, self._unchanged, normal, why_not=why_not)

    def _taken_over(self, planned: PlannedReplay) -> ReplayedChange | None:
        """Return a change that another process has tried on this failure; None if there is none."""
        for run in self._lab.elsewhere:
            tried = [e.what for e in run.events_of(ChangeTried) if e.what.name == planned.name]
            replay = replayed(run)
            if not tried or replay is None or replay.failing != self._window.failing:
                continue
            self._lab.take_over(run, (REPLAY_LOSS, REPLAY_NORM), planned.name)
            self._lab.event(tried[-1])
            return self._judged(planned.name, tried[-1].measure, tried[-1].why_not)
        return None

    def separate(self) -> Triage:
        """Find out whether it is the data or the state, and which samples."""
        found = triage(self._window, self._band)
        if found.batch_on_older_weights:
            found = replace(found, samples=self._guilty_samples())
        older, other = found.batch_on_older_weights, found.older_batch_on_these_weights
        self._lab.event(TriageMade(older, other, found.samples, found.outlies))
        return found

    def _guilty_samples(self) -> tuple[int, ...]:
        """The samples that fail; those of the birth, if the batch does not fail without them."""
        born = self._birth if self._window.onset == self._window.failing else None
        if born is None:
            return guilty_samples(self._window, self._band)
        suspects = born.samples if born.sample_count == len(born.samples) else ()
        return guilty_samples(self._window, self._band, born.micro_batch, suspects)

    @property
    def is_alike(self) -> bool:
        """Whether the losses of the window are those that were recorded, up to rounding."""
        return all(near(loss, recorded) for loss, recorded in self._pairs())

    def _pairs(self) -> list[tuple[float, float]]:
        """Return the loss of each step of the replay, and the one that was recorded."""
        return [
            (loss, recorded)
            for step, loss in zip(self.plain.steps, self.plain.losses, strict=True)
            if (recorded := self._window.recorded(step)) is not None
        ]

    def _write(self, name: str, trial: ReplayTrial) -> None:
        if not self._records:
            return
        for values, signal in ((trial.losses, REPLAY_LOSS), (trial.norms, REPLAY_NORM)):
            for first, part in pieces(trial.steps, values):
                self._lab.write(signal, part, trial=name, first=first)


def _pairs(alone: Sequence[PlannedReplay]) -> Iterator[PlannedReplay]:
    """Combine changes that act on the step itself, of different families."""
    acting = [each for each in alone if not each.why_not and family_of(each.name) in _ACTING]
    for one, other in combinations(acting, 2):
        if family_of(one.name) is not family_of(other.name):
            yield one.together_with(other)


def _edited(window: FailureWindow) -> str:
    """Say what the script writes to between steps, and how that was replayed."""
    if not window.edits.at:
        return ""
    places = [phase.rewrite.where for phase in window.setup.phases if phase.rewrite is not None]
    events = [] if window.run is None else window.run.events_of(WeightsEdited)
    places += [f"between two updates at {event.what.where}" for event in events if event.what.where]
    where = f" ({places[0]})" if places else ""
    how = (
        "these statements are replayed as well"
        if window.edits.are_repeatable
        else "the recorded values are put back"
    )
    return f"the script writes to {listed(window.edits.names)} between steps{where}; {how}"


def _is_finite(batch: Batch) -> bool:
    return all(bool(tensor.isfinite().all()) for tensor in tensors(batch))


def _count(batch: object) -> int | None:
    try:
        return size(batch)
    except InapplicableError:
        return None


def estimate(investigation: Investigation, rungs: int = 15) -> float:
    """Estimate the seconds that the whole takes from those of one window."""
    return investigation.seconds * (rungs + 4)


def whole(
    window: FailureWindow, lab: Lab, *, ladder: bool = True, later: FailureWindow | None = None
) -> Iterator[str]:
    """Run the whole investigation, and yield a line for the user after each part.

    `later` is a window in which the same training stopped being finite: where a loss left its
    course without that, the operation that gave the first such value is found there.
    """
    began = time.perf_counter()
    found = Investigation(window, lab)
    yield f"one replay takes {found.seconds:.2g} s; estimated total {estimate(found):.2g} s"
    reproduction = found.reproduce()
    yield reproduction.says
    traced = found.trace()
    if traced is None and later is not None and reproduction.verdict != NOT_REPRODUCED:
        end = Investigation(later, lab, records_losses=False)
        traced = end.trace() if end.is_alike else None
    if traced is not None:
        yield traced.says
    if reproduction.verdict == NOT_REPRODUCED:
        yield "no change is tried: it would be tried on another training"
    elif found.descends:
        yield NO_FLOOR
    elif not found.fails:
        yield "the failure does not happen again: no change is tried"
    elif ladder:
        for change in found.try_changes():
            yield f"{change.name}: {change.outcome} ({change.says})"
        if lab.share == WHOLE:
            yield found.separate().says
    lab.event(ExperimentMade("replay", time.perf_counter() - began))
