"""Learning-rate schedules: the rate by step, the schedulers, and how often they are stepped."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts.robust import Values
from holter.record import Event
from holter.record.events import LoaderSeen, PassBegan, SchedulerSeen
from holter.record.signals import DATA_BATCH_SIZE, LR, SCHEDULE_STEPS, VAL_LOSS

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

Steps = npt.NDArray[np.int64]

WEAK, GONE = 0.1, 0.01  # shares of its peak at which a rate slows learning, and stops it
_CYCLIC = ("WarmRestarts", "Cyclic")  # in the names of schedulers that repeat their values


@dataclass(frozen=True, slots=True)
class Rate:
    """The learning rate of one optimizer, by step."""

    optimizer: str
    group: str  # the owner of the largest rate
    steps: Steps
    values: Values  # the largest of all groups
    relative: Values  # as a share of its peak, for the group that is nearest to its own

    @property
    def peak(self) -> float:
        """The largest learning rate."""
        return float(self.values.max())

    def rises_until(self, step: int) -> bool:
        """Whether the rate never falls, ends well above its start, and still rises after `step`."""
        rises = np.diff(self.values)
        late = bool((rises[self.steps[1:] > step] > 0).any())
        return late and bool((rises >= 0).all()) and self.values[-1] > 1.5 * self.values[0]

    @property
    def troughs(self) -> Steps:
        """The steps at which a falling rate begins to rise."""
        moves = np.flatnonzero(np.diff(self.values))
        rising = np.diff(self.values)[moves] > 0
        return self.steps[moves[1:][rising[1:] & ~rising[:-1]]]

    def first_below(self, share: float) -> int:
        """Return the step after which the rate stays below this share of its peak, or the end."""
        above = np.flatnonzero(self.relative > share)
        after = int(above[-1]) + 1 if len(above) else 0
        return int(self.steps[after]) if after < len(self.steps) else int(self.steps[-1]) + 1

    def share_before(self, step: int) -> float:
        """Return the share of the steps of its optimizer that are before `step`.

        A run may train in stages, with an optimizer each.
        """
        first, end = int(self.steps[0]), int(self.steps[-1]) + 1
        return (min(step, end) - first) / (end - first)

    def is_zero_from(self, step: int) -> bool:
        """Whether the rate is exactly 0 in all groups from `step` to the end."""
        rest = self.values[self.steps >= step]
        return bool(len(rest)) and bool((rest == 0).all())

    def at(self, step: int) -> float | None:
        """Return the rate in effect at `step`, or None before the first reading."""
        index = int(np.searchsorted(self.steps, step, "right")) - 1
        return float(self.values[index]) if index >= 0 else None


def rates(facts: "Facts") -> list[Rate]:
    """Return the learning rate of each optimizer, without groups whose rate is always 0."""
    if LR not in facts.run:
        return []
    rows = facts.run[LR].rows()
    values = rows.values.astype(np.float64)
    values[~rows.present | ~np.isfinite(values)] = np.nan
    columns: dict[str, list[int]] = {}
    for column, owner in enumerate(rows.owners):
        if np.nanmax(values[:, column], initial=0) > 0:
            columns.setdefault(owner.rpartition(" group ")[0], []).append(column)
    rates = []
    for optimizer, own in columns.items():
        read = ~np.isnan(values[:, own]).all(axis=1)
        groups = values[read][:, own]
        peaks = np.nanmax(groups, axis=0)
        rates.append(
            Rate(
                optimizer,
                group=rows.owners[own[int(peaks.argmax())]],
                steps=rows.steps[read],
                values=np.nanmax(groups, axis=1),
                relative=np.nanmax(groups / peaks, axis=1),
            )
        )
    return rates


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A scheduler that the script steps: its class and its settings, in calls."""

    name: str
    horizon: int | None  # calls until the schedule ends
    gamma: float | None
    step_size: int | None
    early: bool  # stepped before any optimizer
    step: int  # of its first call

    @property
    def is_cyclic(self) -> bool:
        """Whether it repeats its values by design."""
        return any(part in self.name for part in _CYCLIC)

    def __str__(self) -> str:
        settings = {"horizon": self.horizon, "gamma": self.gamma, "step_size": self.step_size}
        shown = ", ".join(
            f"{key} {value:g}" for key, value in settings.items() if value is not None
        )
        return f"{self.name} ({shown})" if shown else self.name


def schedulers(facts: "Facts") -> list[Scheduler]:
    """Return the schedulers that were stepped, in order of their first call."""
    return [_scheduler(event) for event in facts.run.events_of(SchedulerSeen)]


def _scheduler(event: Event[SchedulerSeen]) -> Scheduler:
    seen = event.what
    return Scheduler(
        name=seen.scheduler or "scheduler",
        horizon=seen.horizon,
        gamma=seen.gamma,
        step_size=seen.step_size,
        early=seen.early,
        step=event.step,
    )


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a scheduler is stepped; the mean if there are several."""

    per_step: float  # calls per step of the optimizer
    calls: float  # in the whole run

    @property
    def is_per_step(self) -> bool:
        """Whether it is stepped at least as often as the optimizer."""
        return self.per_step > 0.9


def pace(facts: "Facts") -> Pace | None:
    """Return how often the schedulers are stepped, or None if none is."""
    counts = facts.run[SCHEDULE_STEPS].get("") if SCHEDULE_STEPS in facts.run else None
    if counts is None or not len(counts):
        return None
    calls = float(counts.values.sum()) / max(len(facts.schedulers), 1)
    # a reading counts all calls since the previous reading, however many steps ago
    since = max(counts.last - counts.first, 1)
    after_first = calls * (1 - counts.values[0] / max(counts.values.sum(), 1))
    return Pace(float(after_first / since), calls)


@dataclass(frozen=True, slots=True)
class Epochs:
    """The equal parts of a run: passes over the training data, or validations."""

    count: int
    length: float  # in steps
    kind: str  # "passes over loader", "validations"


def epochs(facts: "Facts") -> Epochs | None:
    """Return the epochs of a run, or None without a loader and without regular validations.

    A pass that is started but not trained on (a first batch to look at) does not count. Loaders
    with equal settings count as one that is re-created for each epoch.
    """
    if DATA_BATCH_SIZE in facts.run:
        counts = {loader: len(sizes) for loader, sizes in facts.run[DATA_BATCH_SIZE].items()}
        trained = max(counts, key=lambda loader: counts[loader])
        equal = _equal_loaders(facts, trained)
        starts = {
            event.step for event in facts.run.events_of(PassBegan) if event.what.loader in equal
        }
        if starts:
            return Epochs(len(starts), facts.run.steps / len(starts), f"passes over {trained}")
    if VAL_LOSS in facts.run:
        longest = max(facts.run[VAL_LOSS].values(), key=len)
        gaps = np.diff(longest.steps)
        if len(gaps) >= 2 and gaps.max() <= 1.1 * gaps.min() + 1:
            return Epochs(len(longest), facts.run.steps / len(longest), "validations")
    return None


def call_intervals(facts: "Facts") -> Epochs | None:
    """Return the parts of a run between regular calls of its schedulers, or None.

    In a loop without a loader and without validations, nothing else shows where an epoch ends.
    """
    counts = facts.run[SCHEDULE_STEPS].get("") if SCHEDULE_STEPS in facts.run else None
    if counts is None:
        return None
    gaps = np.diff(counts.steps[counts.values > 0])
    if len(gaps) < 2 or gaps.max() > 1.1 * gaps.min() + 1:
        return None
    return Epochs(len(gaps) + 1, float(np.median(gaps)), "intervals")


def _equal_loaders(facts: "Facts", name: str) -> set[str]:
    """Return the names of all loaders with the settings of the named one."""
    settings = {
        event.what.loader: replace(event.what, loader="")
        for event in facts.run.events_of(LoaderSeen)
    }
    return {name} | {other for other, own in settings.items() if own == settings.get(name)}
