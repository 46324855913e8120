"""What a replay of a captured failure measured, and which of the changes it tried cure it."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from holter.record import Run
from holter.record.band import Band
from holter.record.births import Birth
from holter.record.events import (
    BirthFound,
    CaptureWritten,
    ChangesTried,
    ChangeTried,
    Reproduced,
    TriageMade,
    WindowMeasure,
)
from holter.record.trials import TrialKind, TrialName, parts

NOT_REPRODUCED = "not reproduced"
NO_BAND = Band(math.nan, math.nan)  # too few losses before the failure


class ChangeFamily(StrEnum):
    """What kind of thing a change acts on."""

    KERNELS = "kernels"
    PRECISION = "precision"
    GUARD = "guard"
    CLIP = "clip"
    STATE = "state"
    RATE = "rate"
    EDITS = "edits"  # what the script writes to weights between steps
    NOISE = "noise"
    ACCUMULATION = "accumulation"  # batches that make a step
    SKIP = "skip"
    BATCH = "batch"
    PAIR = "pair"  # two changes together


SMALLER_STEPS = (ChangeFamily.CLIP, ChangeFamily.RATE)

# From the least intervention to the largest: the first that cures is the minimal cure.
_FAMILIES = {
    TrialKind.COMPILE_OFF: ChangeFamily.KERNELS,
    TrialKind.MATH_ATTENTION: ChangeFamily.KERNELS,
    TrialKind.DETERMINISTIC: ChangeFamily.KERNELS,
    TrialKind.FLOAT32: ChangeFamily.PRECISION,
    TrialKind.GUARDED: ChangeFamily.GUARD,
    TrialKind.SAME_ACCUMULATION: ChangeFamily.ACCUMULATION,
    TrialKind.EARLIER_RATE: ChangeFamily.RATE,
    TrialKind.LINE_SEARCH: ChangeFamily.RATE,
    TrialKind.CLIP: ChangeFamily.CLIP,
    TrialKind.LARGER_EPSILON: ChangeFamily.STATE,
    TrialKind.LEARNING_RATE: ChangeFamily.RATE,
    TrialKind.SECOND_MOMENT_RESET: ChangeFamily.STATE,
    TrialKind.EDITS_LEFT_OUT: ChangeFamily.EDITS,
    TrialKind.DROPOUT_OFF: ChangeFamily.NOISE,
    TrialKind.STEP_SKIPPED: ChangeFamily.SKIP,
    TrialKind.PREVIOUS_BATCH: ChangeFamily.BATCH,
    TrialKind.ANOTHER_BATCH: ChangeFamily.BATCH,
}
_ORDER = list(_FAMILIES)
SLOWER = str(TrialName(TrialKind.LEARNING_RATE, "0.1"))
STEP_SKIPPED = str(TrialName(TrialKind.STEP_SKIPPED))
_MOST_OF_A_RISE = 0.5  # that smaller steps leave, if other data has caused it
_BEYOND_LEVEL = 3.0  # times the loss of other data: the failure went on from there
_SEVERAL = 2  # bad batches among the next few: not a single one
_MUCH_LOWER = 0.2  # times the learning rate: below, a larger change than a reset of moments


def family_of(trial: str) -> ChangeFamily:
    """Return what the change of a trial acts on."""
    changes = parts(trial)
    return _FAMILIES[changes[0].kind] if len(changes) == 1 else ChangeFamily.PAIR


class CureOutcome(StrEnum):
    """What a change does to a failure."""

    CURES = "cures"
    DOES_NOT = "does not"
    WORSENS = "worsens"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True)
class Normal:
    """The losses that a training without the failure would have."""

    band: Band  # before it
    peak: float | None = None  # the highest shortly before
    level: float | None = None  # to which other data raised the loss where the failure began

    def beside(self, unchanged: WindowMeasure, tried: Mapping[str, WindowMeasure]) -> "Normal":
        """Return it with the level of other data, if trials show that there are such.

        A tenth of the learning rate leaves the rise with which the failure began as it is, and
        leaving that step out does not help. So no change can bring the old losses back; one that
        keeps the loss from growing further cures what else went wrong.
        """
        slower, skipped = tried.get(SLOWER), tried.get(STEP_SKIPPED)
        own, late = unchanged.onset_loss, unchanged.late_loss
        if slower is None or slower.onset_loss is None or skipped is None or own is None:
            return self
        rose = math.isfinite(own) and own > self.band.ceiling()
        stays = slower.onset_loss >= _MOST_OF_A_RISE * own
        grew = unchanged.nonfinite_at is not None or late is None or late > _BEYOND_LEVEL * own
        one_batch = concluded(skipped, unchanged, self)[0] is CureOutcome.CURES
        return replace(self, level=own) if rose and stays and grew and not one_batch else self


def concluded(
    trial: WindowMeasure, unchanged: WindowMeasure, normal: Normal
) -> tuple[CureOutcome, str]:
    """Decide whether the loss is normal again from the failing step on, and say by what."""
    band, peak = normal.band, normal.peak
    if trial.error:
        return CureOutcome.DOES_NOT, trial.error
    if trial.nonfinite_at is not None:
        failed_at = unchanged.nonfinite_at
        if failed_at is not None and trial.nonfinite_at < failed_at:
            return CureOutcome.WORSENS, f"not finite at step {trial.nonfinite_at} already"
        return CureOutcome.DOES_NOT, f"not finite at step {trial.nonfinite_at}"
    if trial.late_loss is None:
        return CureOutcome.DOES_NOT, "no step was left to judge by"
    limit = band.ceiling()
    if unchanged.nonfinite_at is None and unchanged.late_loss is not None:
        # A wide band: at least half of the rise has to be gone.
        half = (band.median + unchanged.late_loss) / 2
        limit = min(limit, max(half, band.median + band.spread))
    elif peak is not None:  # losses with heavy tails
        limit = max(limit, peak)
    known = math.isfinite(band.median)
    before = f", before the failure {band.median:.4g}" if known else ""
    if normal.level is not None:
        limit = max(limit, normal.level)
        before += f", {normal.level:.4g} on the data with which it began"
    measured = f"loss {trial.late_loss:.4g}{before}"
    high = known and trial.late_loss > limit
    return (CureOutcome.DOES_NOT if high else CureOutcome.CURES), measured


@dataclass(frozen=True, slots=True)
class ReplayedChange:
    """A change that was tried on a failure: what it does, and by what that is known."""

    name: str
    outcome: CureOutcome
    says: str

    @property
    def family(self) -> ChangeFamily:
        """What it acts on."""
        return family_of(self.name)


def judged(
    name: str,
    measure: WindowMeasure,
    unchanged: WindowMeasure,
    normal: Normal,
    *,
    why_not: str = "",
) -> ReplayedChange:
    """Conclude from what a trial measured; `why_not` says why it was not made."""
    if why_not:
        return ReplayedChange(name, CureOutcome.NOT_APPLICABLE, why_not)
    # The script casts by itself, or combines types that torch does not.
    if measure.error and family_of(name) in (ChangeFamily.PRECISION, ChangeFamily.GUARD):
        return ReplayedChange(name, CureOutcome.NOT_APPLICABLE, measure.error)
    return ReplayedChange(name, *concluded(measure, unchanged, normal))


@dataclass(frozen=True, slots=True)
class Triage:
    """Whether the batch fails on older weights too, and an older batch on these weights."""

    batch_on_older_weights: bool | None
    older_batch_on_these_weights: bool | None
    samples: tuple[int, ...] = ()  # of the batch that fail by themselves

    @property
    def is_data(self) -> bool:
        """Whether it is the batch, not the weights."""
        return bool(self.batch_on_older_weights) and self.older_batch_on_these_weights is False

    @property
    def says(self) -> str:
        """Data, state, both, or neither alone."""
        data, state = self.batch_on_older_weights, self.older_batch_on_these_weights
        if data and state is False:
            return "data: the batch fails on older weights too, and other batches do not"
        if data is False and state:
            return "state: other batches fail on these weights, and the batch did not on older ones"
        if data and state:
            return "both: the batch fails on older weights, and other batches on these"
        if data is False and state is False:
            return "the meeting of this batch with these weights: neither fails with another"
        return "unknown"


@dataclass(frozen=True, slots=True)
class Replayed:
    """The last replay of a run."""

    about: Reproduced
    birth: Birth | None
    changes: Mapping[str, ReplayedChange]  # by name, as they were tried
    all_tried: bool  # no change was left out by an interrupt
    triage: Triage | None
    born_at: int | None = None  # the step of the birth
    has_other_data: bool = False  # from the onset on, with losses of another level

    @property
    def is_born_later(self) -> bool:
        """Whether a training that left its course before ended in this birth."""
        return self.born_at is not None and self.born_at > self.failing

    @property
    def band(self) -> Band:
        """The losses before the failure."""
        about = self.about
        if about.normal_loss is None or about.normal_spread is None:
            return NO_BAND
        return Band(about.normal_loss, about.normal_spread)

    @property
    def failing(self) -> int:
        """The step that fails."""
        return self.about.failing

    @property
    def onset(self) -> int:
        """The first step out of its band."""
        return self.about.onset

    @property
    def first(self) -> int:
        """The first step of the window."""
        return self.about.state_step

    @property
    def alarm(self) -> str:
        """Why the capture was written."""
        return self.about.alarm

    @property
    def verdict(self) -> str:
        """How well the failure was reproduced."""
        return self.about.verdict

    @property
    def says(self) -> str:
        """The verdict in a sentence."""
        return self.about.says

    @property
    def is_reproduced(self) -> bool:
        """Whether anything can be concluded from it."""
        return self.verdict != NOT_REPRODUCED

    @property
    def is_data(self) -> bool:
        """Whether the batch fails on older weights, too, and another on these does not."""
        return self.triage is not None and self.triage.is_data and not self.learns_other_data

    @property
    def learns_other_data(self) -> bool:
        """Whether the data are others from the onset on, and smaller steps learn them."""
        return self.has_other_data and bool(self.cured_by(*SMALLER_STEPS))

    @property
    def is_given(self) -> bool:
        """Whether the step was given values that are not finite, at once and not by its weights."""
        birth = self.birth
        at_once = self.onset == self.failing and not self.is_born_later
        return birth is not None and birth.kind == "bad input" and at_once

    @property
    def fails_on_older_weights(self) -> bool:
        """Whether the batch is known to fail on older weights, too."""
        return self.triage is not None and bool(self.triage.batch_on_older_weights)

    def cured_by(self, *families: str) -> list[str]:
        """Return the changes of these families that cure, the least first."""
        cures = [c for c in self._of(families) if c.outcome is CureOutcome.CURES]
        return [change.name for change in sorted(cures, key=_size)]

    def not_cured_by(self, *families: str) -> list[str]:
        """Return the changes of these families that were tried and do not."""
        failed = (CureOutcome.DOES_NOT, CureOutcome.WORSENS)
        return [change.name for change in self._of(families) if change.outcome in failed]

    def _of(self, families: Iterable[str]) -> list[ReplayedChange]:
        return [change for change in self.changes.values() if change.family in families]

    @property
    def proven_cure(self) -> ReplayedChange | None:
        """The least change that cures, if the failure was reproduced and all were tried."""
        return self.minimal_cure if self.is_reproduced and self.all_tried else None

    @property
    def minimal_cure(self) -> ReplayedChange | None:
        """The least change that cures.

        Kernels and precision come first: they leave the training as it is meant. Then a safe form
        of the operation that fails, and what acts on steps, unless it is the data: smaller steps
        only limit the damage that a bad batch does. The safe form comes first where the operation
        has no value for such operands (log of 0), which other batches will meet as well, or where
        several batches are bad in a few steps: there is no single batch to leave out.
        """
        cures = [c for c in self.changes.values() if c.outcome is CureOutcome.CURES]
        if self.is_given:  # smaller steps change what a script collects, not what it is given
            cures = [c for c in cures if c.family not in SMALLER_STEPS]
        cures.sort(key=_size)
        meant = [c for c in cures if c.family in (ChangeFamily.KERNELS, ChangeFamily.PRECISION)]
        without = [c for c in cures if c.family in (ChangeFamily.BATCH, ChangeFamily.SKIP)]
        local = (ChangeFamily.GUARD, ChangeFamily.ACCUMULATION)  # change what is wrong, alone
        guards = [c for c in cures if c.family in local]
        birth = self.birth
        if (
            birth is not None
            and birth.phase == "update"
            and birth.is_singular
            and not self.is_born_later
        ):
            # The optimizer divides by 0: its epsilon is the guard, whatever the batch.
            meant += [c for c in cures if parts(c.name)[0].kind is TrialKind.LARGER_EPSILON]
        acting = [*guards, *(c for c in cures if c not in (*meant, *without, *guards))]
        recurs = self.about.bad >= _SEVERAL or (birth is not None and birth.is_singular)
        first = self.is_data and not (guards and recurs)
        order = (*meant, *without, *acting) if first else (*meant, *acting, *without)
        return next(iter(order), None)


def _size(change: ReplayedChange) -> float:
    """Return how large an intervention a change is, for sorting."""
    (name, *others) = parts(change.name)
    if others:
        return math.inf
    if name.kind is TrialKind.LEARNING_RATE and name.amount < _MUCH_LOWER:
        return _ORDER.index(TrialKind.SECOND_MOMENT_RESET) + 0.5
    return _ORDER.index(name.kind)


def replayed(run: Run) -> Replayed | None:
    """What the last replay showed; None where there was none."""
    about: Reproduced | None = None
    born: BirthFound | None = None
    tried: list[ChangeTried] = []
    all_tried = False
    triage: Triage | None = None
    for event in run.events:
        match event.what:
            case Reproduced():  # another replay begins
                about, born, tried, all_tried, triage = event.what, None, [], False, None
            case BirthFound():
                born = event.what
            case ChangeTried():
                tried.append(event.what)
            case ChangesTried():
                all_tried = True
            case TriageMade(older, other, samples):
                triage = Triage(older, other, samples)
    if about is None:
        return None
    found = Replayed(
        about=about,
        birth=None if born is None else born.birth,
        changes={},
        all_tried=all_tried,
        triage=triage,
        born_at=None if born is None else born.failing,
    )
    measures = {each.name: each.measure for each in tried}
    normal = Normal(found.band, about.normal_peak).beside(about.unchanged, measures)
    changes = [
        judged(each.name, each.measure, about.unchanged, normal, why_not=each.why_not)
        for each in tried
    ]
    return replace(
        found,
        changes={change.name: change for change in changes},
        has_other_data=normal.level is not None,
    )


def captured_failure(run: Run) -> int | None:
    """Return the step of the first captured failure; None if there is none, or one was replayed."""
    if any(True for _ in run.events_of(Reproduced)):
        return None
    captured = (event.what for event in run.events_of(CaptureWritten))
    return min((each.of for each in captured if each.alarm != "asked"), default=None)


def advised_replay(run: Run) -> str:
    """Return the command that replays a captured failure and what it tells, if nobody has."""
    if captured_failure(run) is None:
        return ""
    path = "RUN" if run.path is None else str(run.path)
    return (
        f"`holter try replay {path}` repeats the captured steps; it names operation, line and"
        " samples, and the change that cures the failure."
    )


def fails(found: Replayed) -> bool:
    """Whether the replay failed as the training did."""
    return found.is_reproduced and found.alarm not in ("asked", "exception")


def listed(names: list[str]) -> str:
    """`a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def since(found: Replayed) -> str:
    """Where it began, if that was earlier."""
    return f", which began with step {found.onset}," if found.onset < found.failing else ""
