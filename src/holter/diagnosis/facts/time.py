"""Where the time of a run goes: phases of a step, what bounds it, steps that take much longer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from holter.record import Run, Series
from holter.record.events import LoaderSeen, PassBegan
from holter.record.signals import (
    DATA_BATCH_SIZE,
    DATA_BATCHES,
    INPUT_TOKENS,
    SYNC_CALLS,
    TIME_BACKWARD,
    TIME_CHECKPOINT,
    TIME_COMPILED_GRAPHS,
    TIME_COPY,
    TIME_DATA_WAIT,
    TIME_DEVICE_BACKWARD,
    TIME_DEVICE_FORWARD,
    TIME_DEVICE_IDLE,
    TIME_DEVICE_OPTIMIZER,
    TIME_EVALUATION,
    TIME_FORWARD,
    TIME_GARBAGE,
    TIME_OPTIMIZER,
    TIME_STEP,
    TIME_SYNC,
    WATCH_TIME,
    Signal,
)

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_LEAST = 20  # steps that make a breakdown
_WARM_UP = 0.1  # share of the steps that is left out, and at most
_MOST_WARM_UP = 50  # steps
_RECENT = 0.5  # share of the steps that counts, once the data were passed over twice
_SLOW = 4.0  # times the median step
_CAUSED = 0.5  # share of the excess of a slow step that its cause has to explain
_LARGE = 0.3  # share of a step from which on a phase bounds it
_MOST_GAIN = 50.0  # times: what is left of a step cannot be measured any better
_IDLE = 0.5  # share of steps that the GPU waits for, from which on the host bounds the run

Floats = npt.NDArray[np.float64]
Steps = npt.NDArray[np.int64]


class Bound(StrEnum):
    """What a step would be shorter without."""

    INPUT = "input"
    TRANSFER = "transfer"
    COMPUTE = "compute"
    LAUNCHES = "launches"
    SYNCHRONISATION = "synchronisation"
    EVALUATION = "evaluation"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Slow:
    """Steps that took much longer than most, for one reason."""

    cause: str  # "" where it is unknown
    steps: tuple[int, ...]
    excess: float  # seconds in all, beyond as many median steps
    signal: Signal


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The mean time of a step, in seconds, and its parts; `holter` comes on top."""

    first: int  # steps that were measured
    last: int
    count: int
    step: float
    median: float
    wait: float  # for batches, those that begin a pass aside
    start: float  # for the first batch of a pass, beyond that
    copy: float | None  # to the GPU
    forward: float
    backward: float
    optimizer: float
    evaluation: float
    checkpoint: float
    garbage: float
    holter: float
    sync: float | None  # for the GPU
    sync_calls: float | None
    idle: float | None  # share of steps that the GPU waited for
    device: tuple[float, float, float] | None  # forward, backward, optimizer on the GPU
    samples: float | None  # a second
    tokens: float | None  # a second
    slow: tuple[Slow, ...]  # of the whole run
    total: float  # seconds of the whole run

    @property
    def parts(self) -> dict[str, float]:
        """The parts of a step by name, which add up to it."""
        named = {
            "data wait": self.wait + self.start,
            "forward": self.forward,
            "backward": self.backward,
            "optimizer": self.optimizer,
            "evaluation": self.evaluation,
            "checkpoint": self.checkpoint,
            "garbage collection": self.garbage,
        }
        return named | {"other": max(self.step - sum(named.values()), 0.0)}

    def share(self, seconds: float) -> float:
        """A time as a share of the step."""
        return seconds / self.step

    @property
    def sync_gain(self) -> float:
        """Share of the step that is lost because host and GPU wait for each other in turn."""
        if not self.sync or not self.sync_calls or self.sync_calls < 1:
            return 0.0
        return 1 - max(self.sync, self.step - self.sync) / self.step

    @property
    def bound(self) -> Bound:
        """What bounds the run."""
        if self.share(self.wait) >= _LARGE:
            return Bound.INPUT
        if self.idle is not None:
            return self._on_gpu(self.idle)
        parts = self.parts
        passes = parts["forward"] + parts["backward"] + parts["optimizer"]
        rest = {
            Bound.COMPUTE: passes,
            Bound.EVALUATION: parts["evaluation"],
            Bound.OTHER: parts["other"] + parts["checkpoint"] + parts["garbage collection"],
        }
        return max(rest, key=lambda bound: rest[bound])

    def _on_gpu(self, idle: float) -> Bound:
        if self.copy is not None and self.share(self.copy) >= _LARGE:
            return Bound.TRANSFER
        if self.share(self.evaluation) >= _IDLE:
            return Bound.EVALUATION
        if self.sync_gain >= _LARGE / 2:
            return Bound.SYNCHRONISATION
        return Bound.LAUNCHES if idle >= _IDLE else Bound.COMPUTE

    @property
    def gain(self) -> float:
        """How many times faster steps would be if what bounds them were hidden; 1 if unknown."""
        hidden = {
            Bound.INPUT: self.wait,
            Bound.TRANSFER: self.copy or 0.0,
            Bound.SYNCHRONISATION: self.sync_gain * self.step,
        }.get(self.bound, 0.0)
        return self.step / max(self.step - hidden, self.step / _MOST_GAIN)


def breakdown(facts: "Facts") -> Breakdown | str:
    """Return where the time of the steps goes, or why that cannot be said."""
    run = facts.run
    if TIME_STEP not in run:
        return "the time of steps was not measured"
    lengths = run[TIME_STEP][""]
    skipped = min(int(len(lengths) * _WARM_UP), _MOST_WARM_UP)
    passes = {event.step for event in run.events_of(PassBegan)}
    if len(passes) > 1:  # what is cached in the first pass is no part of the others
        skipped = max(skipped, min(int(len(lengths) * _RECENT), len(lengths) - _LEAST))
    if len(lengths) - skipped < _LEAST:
        return f"{len(lengths)} of the {_LEAST} steps needed"
    steps, length = lengths.steps[skipped:], lengths.values[skipped:].astype(np.float64)
    waits = np.minimum(_waits(run, steps), length)
    begins = np.isin(steps, [step + n for step in passes for n in (0, 1)])
    typical = float(waits[~begins].mean()) if (~begins).any() else float(waits.mean())
    typical = min(typical, float(length.mean()))  # steps that begin a pass may be shorter
    means = {signal: _mean(run, signal, steps) for signal in _PHASES}
    return Breakdown(
        first=int(steps[0]),
        last=int(steps[-1]),
        count=len(steps),
        step=max(float(length.mean()), 1e-9),
        median=float(np.median(length)),
        wait=typical,
        start=max(float(waits.mean()) - typical, 0.0),
        copy=_sampled(run, TIME_COPY),
        forward=means[TIME_FORWARD],
        backward=means[TIME_BACKWARD],
        optimizer=means[TIME_OPTIMIZER],
        evaluation=means[TIME_EVALUATION],
        checkpoint=means[TIME_CHECKPOINT],
        garbage=means[TIME_GARBAGE],
        holter=_mean(run, WATCH_TIME, steps),
        sync=_sampled(run, TIME_SYNC),
        sync_calls=_sampled(run, SYNC_CALLS),
        idle=_sampled(run, TIME_DEVICE_IDLE, by=np.mean),
        device=_device(run),
        samples=_samples(run, steps, float(length.sum())),
        tokens=_tokens(run, steps, float(length.mean())),
        slow=_slow(run, lengths),
        total=float(lengths.values.astype(np.float64).sum()),
    )


_PHASES = (
    TIME_FORWARD,
    TIME_BACKWARD,
    TIME_OPTIMIZER,
    TIME_EVALUATION,
    TIME_CHECKPOINT,
    TIME_GARBAGE,
)


def loaders(run: Run) -> Mapping[str, LoaderSeen]:
    """Return how each loader is set up, by its name."""
    return {event.what.loader: event.what for event in run.events_of(LoaderSeen)}


def _waits(run: Run, steps: Steps) -> Floats:
    """Return the wait for all loaders at each of some steps."""
    waits = np.zeros(len(steps))
    for series in run[TIME_DATA_WAIT].values() if TIME_DATA_WAIT in run else ():
        waits += _at(series, steps)
    return waits


def _at(series: Series, steps: Steps) -> Floats:
    """Return the readings at some steps, 0 where there is none."""
    values = np.zeros(len(steps))
    _, here, there = np.intersect1d(steps, series.steps, return_indices=True)
    values[here] = series.values[there]
    return values


def _mean(run: Run, signal: Signal, steps: Steps) -> float:
    return float(_at(run[signal][""], steps).mean()) if signal in run else 0.0


def _sampled(run: Run, signal: Signal, by: Callable[[Floats], Any] = np.median) -> float | None:
    """Return the middle of what was sampled, or None if nothing was."""
    if signal not in run:
        return None
    values = run[signal][""].values.astype(np.float64)
    return float(by(values)) if len(values) else None


def _device(run: Run) -> tuple[float, float, float] | None:
    signals = (TIME_DEVICE_FORWARD, TIME_DEVICE_BACKWARD, TIME_DEVICE_OPTIMIZER)
    forward, backward, optimizer = (_sampled(run, signal) for signal in signals)
    if forward is None or backward is None or optimizer is None:
        return None
    return forward, backward, optimizer


def _samples(run: Run, steps: Steps, seconds: float) -> float | None:
    """Return the samples that loaders delivered, a second."""
    if DATA_BATCH_SIZE not in run or not seconds:
        return None
    totals = [float(_at(series, steps).sum()) for series in run[DATA_BATCH_SIZE].values()]
    return sum(totals) / seconds


def _tokens(run: Run, steps: Steps, length: float) -> float | None:
    """Return the tokens that steps were made of, a second: those of a batch, times its batches."""
    if INPUT_TOKENS not in run or not len(run[INPUT_TOKENS][""]) or not length:
        return None
    loaders = run[DATA_BATCHES].values() if DATA_BATCHES in run else ()
    batches = max((float(_at(series, steps).mean()) for series in loaders), default=1.0)
    tokens = float(run[INPUT_TOKENS][""].values.astype(np.float64).mean())
    return tokens * max(batches, 1.0) / length


def _slow(run: Run, lengths: Series) -> tuple[Slow, ...]:
    """Return the steps that take much longer than the median, by cause."""
    length = lengths.values.astype(np.float64)
    median = float(np.median(length))
    slow = length > _SLOW * median
    steps, excess = lengths.steps[slow], length[slow] - median
    causes = {
        "evaluation": TIME_EVALUATION,
        "checkpoint": TIME_CHECKPOINT,
        "garbage collection": TIME_GARBAGE,
    }
    left = np.ones(len(steps), bool)
    groups = []
    for cause, signal in causes.items():
        taken = _at(run[signal][""], steps) if signal in run else np.zeros(len(steps))
        groups.append((cause, signal, left & (taken >= _CAUSED * excess)))
        left &= ~groups[-1][2]
    waited = _waits(run, steps)
    groups.append(("data wait", TIME_DATA_WAIT, left & (waited >= _CAUSED * excess)))
    left &= ~groups[-1][2]
    if TIME_COMPILED_GRAPHS in run:
        compiled = _at(run[TIME_COMPILED_GRAPHS][""], steps) > 0
        groups.append(("compilation", TIME_COMPILED_GRAPHS, left & compiled))
        left &= ~compiled
    groups.append(("", TIME_STEP, left))
    return tuple(
        Slow(cause, tuple(steps[chosen].tolist()), float(excess[chosen].sum()), signal)
        for cause, signal, chosen in groups
        if chosen.any()
    )
