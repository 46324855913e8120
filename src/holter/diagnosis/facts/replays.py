"""What a replay of a captured failure showed: its birth, data or state, and the least cure."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from holter.diagnosis.facts.replayed_changes import (
    SMALLER_STEPS,
    ChangeFamily,
    CureOutcome,
    Normal,
    ReplayedChange,
    judged,
    size_of,
)
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
from holter.record.signals import LOSS
from holter.record.trials import TrialKind, parts

NOT_REPRODUCED = "not reproduced"
NO_BAND = Band(math.nan, math.nan)  # too few losses before the failure
_AS_MEANT = (ChangeFamily.KERNELS, ChangeFamily.PRECISION)  # leave the training as it is meant
_MOVED = (ChangeFamily.SETTING, ChangeFamily.COUNTER)  # numbers that the script moves
# These change what is wrong, alone.
_LOCAL = (ChangeFamily.GUARD, ChangeFamily.ACCUMULATION, ChangeFamily.SETTING)
_LAST = 32  # losses at the end of a run that tell whether it recovered
_SEVERAL = 2  # bad batches among the next few: not a single one


@dataclass(frozen=True, slots=True)
class Triage:
    """Whether the batch fails on older weights too, and an older batch on these weights."""

    batch_on_older_weights: bool | None
    older_batch_on_these_weights: bool | None
    samples: tuple[int, ...] = ()  # of the batch that fail by themselves
    outlies: bool | None = None  # values of the batch, against those of the batches before

    @property
    def is_data(self) -> bool:
        """Whether it is the batch, not the weights."""
        return bool(self.batch_on_older_weights) and self.older_batch_on_these_weights is False

    @property
    def says(self) -> str:
        """Data, state, both, or neither alone."""
        data, state = self.batch_on_older_weights, self.older_batch_on_these_weights
        if data and state is False:
            return "data: the batch also fails on older weights, and other batches do not fail"
        if data is False and state:
            return (
                "state: other batches also fail on these weights, and the batch does not fail on"
                " older ones"
            )
        if data and state:
            return (
                "both: the batch also fails on older weights, and other batches also fail on these"
                " weights"
            )
        if data is False and state is False:
            return (
                "the combination of this batch and these weights: neither fails without the other"
            )
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
    measures: Mapping[str, WindowMeasure] = field(default_factory=dict)  # of the changes
    returned: bool = False  # to its level, after a rise of the loss: the training ended well

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
        if self.triage is None or not self.triage.is_data or self.cured_by(*_MOVED):
            return False
        return not (self.learns_other_data or self.has_ordinary_batches)

    @property
    def has_ordinary_batches(self) -> bool:
        """Whether several batches fail on older weights too, with values like those before."""
        ordinary = self.triage is not None and self.triage.outlies is False
        return ordinary and self.about.bad > _SEVERAL

    @property
    def learns_other_data(self) -> bool:
        """Whether the data are others from the onset on, and smaller steps learn them."""
        return self.has_other_data and bool(self.cured_by(*SMALLER_STEPS))

    @property
    def is_given(self) -> bool:
        """Whether the step was given values that are not finite, at once and not by its weights."""
        birth = self.birth
        at_once = self.onset == self.failing and not self.is_born_later
        if birth is None or birth.reaches == "setting" or not at_once:
            return False
        return birth.kind == "bad input" or birth.reaches == "input"

    @property
    def fails_on_older_weights(self) -> bool:
        """Whether the batch is known to fail on older weights, too."""
        return self.triage is not None and bool(self.triage.batch_on_older_weights)

    def cured_by(self, *families: str) -> list[str]:
        """Return the changes of these families that cure, the least first."""
        cures = [c for c in self._of(families) if c.outcome is CureOutcome.CURES]
        return [change.name for change in sorted(cures, key=size_of)]

    def not_cured_by(self, *families: str) -> list[str]:
        """Return the changes of these families that were tried and do not."""
        failed = (CureOutcome.DOES_NOT, CureOutcome.WORSENS)
        return [change.name for change in self._of(families) if change.outcome in failed]

    def _of(self, families: Iterable[str]) -> list[ReplayedChange]:
        return [change for change in self.changes.values() if change.family in families]

    @property
    def is_cured_locally(self) -> bool:
        """Whether the least cure changes only what is wrong: an operation, a number, a kernel."""
        least = self.minimal_cure
        if least is None:
            return False
        kind = parts(least.name)[0].kind
        if kind is TrialKind.EARLIER_RATE:
            return True
        if least.family is ChangeFamily.PRECISION and self.overflows_backward:
            return False  # a number may have moved the gradients out of range
        return least.family in (*_LOCAL, *_AS_MEANT, ChangeFamily.EDITS)

    @property
    def overflows_backward(self) -> bool:
        """Whether a gradient in half precision overflowed, of a loss that did not."""
        birth = self.birth
        return birth is not None and birth.phase == "backward" and birth.kind == "half range"

    @property
    def proven_cure(self) -> ReplayedChange | None:
        """The least change that cures, if the failure was reproduced and all were tried."""
        return self.minimal_cure if self.is_reproduced and self.all_tried else None

    @property
    def minimal_cure(self) -> ReplayedChange | None:
        """The least change that cures."""
        return next(iter(self.ranked_cures), None)

    @property
    def ranked_cures(self) -> tuple[ReplayedChange, ...]:
        """The changes that cure, the least first.

        Kernels and precision come first: they leave the training as it is meant. Then a safe form
        of the operation that fails, and what acts on steps, unless it is the data: smaller steps
        only limit the damage that a bad batch does. The safe form comes first where the operation
        has no value for such operands (log of 0, a CTC loss without an alignment) or the script
        writes a gradient that overflows, which other batches will meet as well, where the values of
        the batch are like those of others, or where several batches are bad in a few steps: there
        is no single batch to leave out.
        """
        cures = [c for c in self.changes.values() if c.outcome is CureOutcome.CURES]
        if self.is_given:  # smaller steps change what a script collects, not what it is given
            cures = [c for c in cures if c.family not in SMALLER_STEPS]
        if any(c.family in SMALLER_STEPS for c in cures):
            # Other kernels round in another way: enough to miss what smaller steps avoid.
            cures = [c for c in cures if c.family is not ChangeFamily.KERNELS]
        cures.sort(key=size_of)
        meant = [c for c in cures if c.family in _AS_MEANT]
        if self.overflows_backward:
            meant = [c for c in cures if c.family is ChangeFamily.SETTING] + meant
        counters = [c for c in cures if c.family is ChangeFamily.COUNTER]
        without = [c for c in cures if c.family in (ChangeFamily.BATCH, ChangeFamily.SKIP)]
        if self.has_ordinary_batches:  # which the training would meet again and again
            cures = [c for c in cures if c not in without]
            without = []
        guards = [c for c in cures if c.family in _LOCAL]
        birth = self.birth
        if (
            birth is not None
            and birth.phase == "update"
            and birth.is_singular
            and not self.is_born_later
        ):
            # The optimizer divides by 0: its epsilon is the guard, whatever the batch.
            meant += [c for c in cures if parts(c.name)[0].kind is TrialKind.LARGER_EPSILON]
        known = (*meant, *without, *guards, *counters)
        acting = [*guards, *(c for c in cures if c not in known), *counters]
        ordinary = self.triage is not None and self.triage.outlies is False
        unsafe = birth is not None and birth.has_safe_form
        recurs = self.about.bad >= _SEVERAL or unsafe or ordinary
        first = self.is_data and not (guards and recurs)
        return (*meant, *without, *acting) if first else (*meant, *acting, *without)


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
            case TriageMade(older, other, samples, outlies):
                triage = Triage(older, other, samples, outlies)
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
    highest = highest_before(run, about.onset)
    normal = Normal(found.band, about.normal_peak, highest=highest)
    normal = normal.beside(about.unchanged, measures)
    changes = [
        judged(each.name, each.measure, about.unchanged, normal, why_not=each.why_not)
        for each in tried
    ]
    return replace(
        found,
        changes={change.name: change for change in changes},
        has_other_data=normal.level is not None,
        returned=about.alarm == "spike" and _returns(run, found),
        measures=measures,
    )


def highest_before(run: Run | None, step: int) -> float | None:
    """Return the highest finite loss that was recorded before a step, or None."""
    if run is None or LOSS not in run:
        return None
    before = [series.values[series.steps < step] for series in run[LOSS].values()]
    finite = [float(values[np.isfinite(values)].max(initial=-math.inf)) for values in before]
    highest = max(finite, default=-math.inf)
    return highest if math.isfinite(highest) else None


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
    """Whether the replay failed as the training did, which did not recover."""
    failed = found.is_reproduced and found.alarm not in ("asked", "exception")
    return failed and not found.returned


def not_failing(found: Replayed) -> str:
    """Say why there is no failure to explain."""
    if found.returned:
        return f"the loss rose at step {found.failing} and returned to its level without a change"
    return f"step {found.failing} does not fail in the replay"


def _returns(run: Run, found: Replayed) -> bool:
    """Whether the last losses are back in the band from before a rise."""
    for series in run[LOSS].values() if LOSS in run else ():
        after = series.values[series.steps > found.failing]
        if found.failing not in series.steps or len(after) < 2 * _LAST:
            continue
        late = after[-_LAST:]
        return bool(np.isfinite(late).all() and np.median(late) <= found.band.ceiling())
    return False


def listed(names: list[str]) -> str:
    """`a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def since(found: Replayed) -> str:
    """Where it began, if that was earlier."""
    return f", which began with step {found.onset}," if found.onset < found.failing else ""
