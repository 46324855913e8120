"""Learning rates as schedules made them: their shape, and how often schedulers were stepped."""

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

WEAK, GONE = 0.1, 0.01  # shares of its peak at which a rate holds the loss back, and stops it
_CYCLIC = ("WarmRestarts", "Cyclic", "OneCycle")  # schedulers that raise the rate on purpose


@dataclass(frozen=True, slots=True)
class Rate:
    """The learning rate of one optimizer at the steps it was read."""

    optimizer: str
    group: str  # the owner of the largest rate
    steps: Steps
    values: Values  # the largest of all groups
    relative: Values  # of the group that is nearest to its own peak, as a share of that

    @property
    def peak(self) -> float:
        """The largest rate."""
        return float(self.values.max())

    def rises_until(self, step: int) -> bool:
        """Whether the rate never fell, ended well above its start, and rose after `step`."""
        rises = np.diff(self.values)
        late = bool((rises[self.steps[1:] > step] > 0).any())
        return late and bool((rises >= 0).all()) and self.values[-1] > 1.5 * self.values[0]

    @property
    def troughs(self) -> Steps:
        """The steps at which a rate that fell began to rise again."""
        moves = np.flatnonzero(np.diff(self.values))
        rising = np.diff(self.values)[moves] > 0
        return self.steps[moves[1:][rising[1:] & ~rising[:-1]]]

    def first_below(self, share: float) -> int:
        """The step from which on the rate stays under this share of its peak, or past the end."""
        above = np.flatnonzero(self.relative > share)
        after = int(above[-1]) + 1 if len(above) else 0
        return int(self.steps[after]) if after < len(self.steps) else int(self.steps[-1]) + 1

    def at(self, step: int) -> float | None:
        """The last rate that was read up to `step`."""
        index = int(np.searchsorted(self.steps, step, "right")) - 1
        return float(self.values[index]) if index >= 0 else None


def rates(facts: "Facts") -> list[Rate]:
    """The learning rate of each optimizer; groups that never learn are left out."""
    if LR not in facts.run:
        return []
    rows = facts.run[LR].rows()
    values = rows.values.astype(np.float64)
    values[~rows.present | ~np.isfinite(values)] = np.nan
    columns: dict[str, list[int]] = {}
    for column, owner in enumerate(rows.owners):
        if np.nanmax(values[:, column], initial=0) > 0:
            columns.setdefault(owner.rpartition(" group ")[0], []).append(column)
    found = []
    for name, own in columns.items():
        known = ~np.isnan(values[:, own]).all(axis=1)
        mine = values[known][:, own]
        relative = np.nanmax(mine / np.nanmax(mine, axis=0), axis=1)
        largest = own[int(np.nanmax(mine, axis=0).argmax())]
        steps = rows.steps[known]
        found.append(Rate(name, rows.owners[largest], steps, np.nanmax(mine, axis=1), relative))
    return found


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A scheduler of the script: its class, and over how many calls it stretches where known."""

    name: str
    horizon: int | None
    gamma: float | None
    step_size: int | None
    early: bool  # stepped before any optimizer was
    step: int

    @property
    def is_cyclic(self) -> bool:
        """Whether it is made to raise the rate again and again."""
        return any(part in self.name for part in _CYCLIC)

    def __str__(self) -> str:
        given = {"horizon": self.horizon, "gamma": self.gamma, "step_size": self.step_size}
        shown = ", ".join(f"{name} {value:g}" for name, value in given.items() if value is not None)
        return f"{self.name} ({shown})" if shown else self.name


def schedulers(facts: "Facts") -> list[Scheduler]:
    """The schedulers that were seen to be stepped."""
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
    """How often a scheduler is stepped, a single one where there are several."""

    per_step: float  # calls for each step of the optimizer
    calls: float  # in the whole run

    @property
    def is_per_step(self) -> bool:
        """Whether it is stepped with the optimizer, or more often."""
        return self.per_step > 0.9


def pace(facts: "Facts") -> Pace | None:
    """How often the schedulers are stepped; None where none was seen to be."""
    counts = facts.run[SCHEDULE_STEPS].get("") if SCHEDULE_STEPS in facts.run else None
    if counts is None or not len(counts):
        return None
    calls = float(counts.values.sum()) / max(len(facts.schedulers), 1)
    # a reading counts all calls since the one before, however many steps ago that was
    since = max(counts.last - counts.first, 1)
    after_first = calls * (1 - counts.values[0] / max(counts.values.sum(), 1))
    return Pace(float(after_first / since), calls)


@dataclass(frozen=True, slots=True)
class Laps:
    """How a run falls into equal stretches: passes over the training data, or validations."""

    count: int
    length: float  # in steps
    kind: str  # "passes over loader", "validations"


def laps(facts: "Facts") -> Laps | None:
    """The epochs of a run; None where no loader and no regular validation tells them.

    A pass that was begun and not trained on (a first batch to look at) does not count. Loaders that
    are alike are one that is made anew for each epoch.
    """
    if DATA_BATCH_SIZE in facts.run:
        read = {loader: len(each) for loader, each in facts.run[DATA_BATCH_SIZE].items()}
        trained = max(read, key=lambda loader: read[loader])
        alike = _alike(facts, trained)
        begun = {
            event.step for event in facts.run.events_of(PassBegan) if event.what.loader in alike
        }
        if begun:
            return Laps(len(begun), facts.run.steps / len(begun), f"passes over {trained}")
    if VAL_LOSS in facts.run:
        most = max(facts.run[VAL_LOSS].values(), key=len)
        gaps = np.diff(most.steps)
        if len(gaps) >= 2 and gaps.max() <= 1.1 * gaps.min() + 1:
            return Laps(len(most), facts.run.steps / len(most), "validations")
    return None


def _alike(facts: "Facts", loader: str) -> set[str]:
    """The names of all loaders with as many batches of the same size, and the same ways."""
    nameless = {
        event.what.loader: replace(event.what, loader="")
        for event in facts.run.events_of(LoaderSeen)
    }
    return {loader} | {name for name, seen in nameless.items() if seen == nameless.get(loader)}
