"""What a replay of a captured failure measured, and which of the changes it tried cure it."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from holter.record import Run
from holter.record.trials import TrialKind, parts

SYMPTOMS = (
    *("nonfinite-loss", "nonfinite-gradient", "nonfinite-weights", "hidden-nonfinite"),
    *("loss-spike", "diverging-loss", "exploding-gradients", "exploding-weights", "huge-updates"),
    *("skipped-steps", "collapsing-loss-scale", "unbounded-loss", "oscillating-loss"),
)  # what the causes of a failure explain

_SPREADS = 8.0  # above the normal loss within which a loss still counts as normal


class Family(StrEnum):
    """What kind of thing a change acts on."""

    KERNELS = "kernels"
    PRECISION = "precision"
    CLIP = "clip"
    STATE = "state"
    RATE = "rate"
    NOISE = "noise"
    SKIP = "skip"
    BATCH = "batch"
    PAIR = "pair"  # two changes together


# From the least intervention to the largest: the first that cures is the minimal cure.
_FAMILIES = {
    TrialKind.COMPILE_OFF: Family.KERNELS,
    TrialKind.MATH_ATTENTION: Family.KERNELS,
    TrialKind.DETERMINISTIC: Family.KERNELS,
    TrialKind.FLOAT32: Family.PRECISION,
    TrialKind.CLIP: Family.CLIP,
    TrialKind.LARGER_EPSILON: Family.STATE,
    TrialKind.EARLIER_RATE: Family.RATE,
    TrialKind.LEARNING_RATE: Family.RATE,
    TrialKind.SECOND_MOMENT_RESET: Family.STATE,
    TrialKind.DROPOUT_OFF: Family.NOISE,
    TrialKind.STEP_SKIPPED: Family.SKIP,
    TrialKind.PREVIOUS_BATCH: Family.BATCH,
    TrialKind.ANOTHER_BATCH: Family.BATCH,
}
_ORDER = list(_FAMILIES)
_MUCH_LOWER = 0.2  # times the learning rate: below, a larger change than a reset of moments


def family_of(trial: str) -> Family:
    """Return what the change of a trial acts on."""
    changes = parts(trial)
    return _FAMILIES[changes[0].kind] if len(changes) == 1 else Family.PAIR


class CureOutcome(StrEnum):
    """What a change does to a failure."""

    CURES = "cures"
    DOES_NOT = "does not"
    WORSENS = "worsens"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True)
class Band:
    """The losses before a failure: their median, and how far they spread around it."""

    middle: float
    spread: float

    @property
    def ceiling(self) -> float:
        """The highest loss that still counts as normal; infinite if nothing is known."""
        limit = self.middle + _SPREADS * self.spread
        return limit if math.isfinite(limit) else math.inf


@dataclass(frozen=True, slots=True)
class WindowMeasure:
    """What one pass through the steps of a failure measured."""

    late_loss: float | None = None  # the median from the failing step on
    nonfinite_at: int | None = None  # the first step whose loss or gradient norm is not finite
    error: str = ""  # what ended it early

    def concluded(self, unchanged: "WindowMeasure", band: Band) -> tuple[CureOutcome, str]:
        """Decide whether the loss is normal again from the failing step on, and say by what."""
        if self.error:
            return CureOutcome.DOES_NOT, self.error
        if self.nonfinite_at is not None:
            before = unchanged.nonfinite_at
            if before is not None and self.nonfinite_at < before:
                return CureOutcome.WORSENS, f"not finite at step {self.nonfinite_at} already"
            return CureOutcome.DOES_NOT, f"not finite at step {self.nonfinite_at}"
        if self.late_loss is None:
            return CureOutcome.DOES_NOT, "no step was left to judge by"
        limit = band.ceiling
        if unchanged.nonfinite_at is None and unchanged.late_loss is not None:
            # A wide band: at least half of the rise has to be gone.
            half = (band.middle + unchanged.late_loss) / 2
            limit = min(limit, max(half, band.middle + band.spread))
        measured = f"loss {self.late_loss:.4g}, before the failure {band.middle:.4g}"
        high = math.isfinite(band.middle) and self.late_loss > limit
        return (CureOutcome.DOES_NOT if high else CureOutcome.CURES), measured


@dataclass(frozen=True, slots=True)
class ReplayedChange:
    """A change that was tried on a failure: what it does, and by what that is known."""

    name: str
    outcome: CureOutcome
    says: str

    @property
    def family(self) -> Family:
        """What it acts on."""
        return family_of(self.name)


def judged(
    name: str, measure: WindowMeasure, unchanged: WindowMeasure, band: Band, *, why_not: str = ""
) -> ReplayedChange:
    """Conclude from what a trial measured; `why_not` says why it was not made."""
    if why_not:
        return ReplayedChange(name, CureOutcome.NOT_APPLICABLE, why_not)
    if measure.error and family_of(name) is Family.PRECISION:  # the model casts by itself
        return ReplayedChange(name, CureOutcome.NOT_APPLICABLE, measure.error)
    return ReplayedChange(name, *measure.concluded(unchanged, band))


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

    failing: int  # the step that fails
    onset: int  # the first step out of its band
    first: int  # of the window
    alarm: str
    verdict: str
    says: str
    birth: Mapping[str, Any] | None
    changes: Mapping[str, ReplayedChange]  # by name, as they were tried
    all_tried: bool  # no change was left out by an interrupt
    triage: Triage | None

    @property
    def is_data(self) -> bool:
        """Whether the batch fails on older weights, too, and another on these does not."""
        return self.triage is not None and self.triage.is_data

    def cured_by(self, *families: str) -> list[str]:
        """Return the changes of these families that cure."""
        return [c.name for c in self._of(families) if c.outcome is CureOutcome.CURES]

    def not_cured_by(self, *families: str) -> list[str]:
        """Return the changes of these families that were tried and do not."""
        failed = (CureOutcome.DOES_NOT, CureOutcome.WORSENS)
        return [change.name for change in self._of(families) if change.outcome in failed]

    def _of(self, families: Iterable[str]) -> list[ReplayedChange]:
        return [change for change in self.changes.values() if change.family in families]

    @property
    def minimal_cure(self) -> ReplayedChange | None:
        """The least change that cures.

        Kernels and precision come first: they leave the training as it is meant. Then what acts on
        steps, unless it is the data: smaller steps only limit the damage that a bad batch does.
        """
        cures = [c for c in self.changes.values() if c.outcome is CureOutcome.CURES]
        cures.sort(key=_size)
        meant = [c for c in cures if c.family in (Family.KERNELS, Family.PRECISION)]
        without = [c for c in cures if c.family in (Family.BATCH, Family.SKIP)]
        acting = [c for c in cures if c not in (*meant, *without)]
        order = (*meant, *without, *acting) if self.is_data else (*meant, *acting, *without)
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
    places = [n for n, event in enumerate(run.events) if event.kind == "reproduction"]
    if not places:
        return None
    events = run.events[places[-1] :]
    about = events[0].data
    last = {event.kind: event.data for event in events}
    band = Band(float(about["normal_loss"]), float(about["normal_spread"]))
    unchanged = _measure(about)
    changes = [
        judged(e.data["name"], _measure(e.data), unchanged, band, why_not=e.data["why_not"])
        for e in events
        if e.kind == "rung"
    ]
    return Replayed(
        failing=int(about["failing"]),
        onset=int(about["onset"]),
        first=int(about["state_step"]),
        alarm=str(about["alarm"]),
        verdict=str(about["verdict"]),
        says=str(about["says"]),
        birth=last.get("birth", {}).get("birth"),
        changes={change.name: change for change in changes},
        all_tried="ladder" in last,
        triage=_triage(last.get("triage")),
    )


def _measure(data: Mapping[str, Any]) -> WindowMeasure:
    return WindowMeasure(data["late_loss"], data["nonfinite_at"], data["error"])


def _triage(data: Mapping[str, Any] | None) -> Triage | None:
    if data is None:
        return None
    older, other = data["batch_on_older_weights"], data["older_batch_on_these_weights"]
    return Triage(older, other, tuple(data["samples"] or ()))


def fails(found: Replayed) -> bool:
    """Whether the replay failed as the training did."""
    return found.verdict != "not reproduced" and found.alarm not in ("asked", "exception")


def listed(names: list[str]) -> str:
    """`a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def since(found: Replayed) -> str:
    """Where it began, if that was earlier."""
    return f", which began with step {found.onset}," if found.onset < found.failing else ""
