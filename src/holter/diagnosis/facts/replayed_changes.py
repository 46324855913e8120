"""The changes that a replay tried on a failure: what each acts on, and whether it cures."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from holter.record.band import Band
from holter.record.events import WindowMeasure
from holter.record.trials import TrialKind, TrialName, parts


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
    SETTING = "setting"  # a number that the script changes: a temperature, a loss weight
    COUNTER = "counter"  # a number that only counts: held, or not set back
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
    TrialKind.ACCUMULATION_DIVIDED: ChangeFamily.ACCUMULATION,
    TrialKind.SAME_ACCUMULATION: ChangeFamily.ACCUMULATION,
    TrialKind.FACTOR: ChangeFamily.SETTING,
    TrialKind.HELD: ChangeFamily.SETTING,
    TrialKind.COUNTER_HELD: ChangeFamily.COUNTER,
    TrialKind.COUNTER_KEPT: ChangeFamily.COUNTER,
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
_GUARDED = 10.0  # times the highest ordinary loss, to which that of a guarded operation may rise
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
    highest: float | None = None  # loss of the training before, from its first step on
    is_guarded: bool = False  # the operation that has no value for such operands has a guard

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
            return CureOutcome.WORSENS, f"already not finite at step {trial.nonfinite_at}"
        return CureOutcome.DOES_NOT, f"not finite at step {trial.nonfinite_at}"
    if trial.late_loss is None:
        return CureOutcome.DOES_NOT, "no step was left to judge"
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
        before += f", {normal.level:.4g} on the initial data"
    if normal.is_guarded and math.isfinite(limit):
        # What such operands mean for the loss is another matter than that there was none.
        limit = max(limit, _GUARDED * max(abs(limit), peak or 0.0, normal.highest or 0.0))
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
    guarded = unchanged.nonfinite_at is not None and family_of(name) is ChangeFamily.GUARD
    normal = replace(normal, is_guarded=guarded)
    return ReplayedChange(name, *concluded(measure, unchanged, normal))


def size_of(change: ReplayedChange) -> float:
    """Return how large an intervention a change is, for sorting."""
    (name, *others) = parts(change.name)
    if others:
        return math.inf
    if name.kind is TrialKind.LEARNING_RATE and name.amount < _MUCH_LOWER:
        return _ORDER.index(TrialKind.SECOND_MOMENT_RESET) + 0.5
    return _ORDER.index(name.kind)
