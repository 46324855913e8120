"""Trainings from one and the same start, at rising rates or at one, judged by held batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import SequentialSampler

from holter.diagnosis.facts.rate_range import RateTrial
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.facts.sweep import Sweep
from holter.lab.batches import cloned, size
from holter.lab.changes.learning_rate import Rates
from holter.lab.inapplicable import InapplicableError
from holter.lab.randomness import same_randomness, seed_all
from holter.lab.setup import Batch, Setup
from holter.lab.state import State
from holter.lab.writing import Lab
from holter.record.events import LrRangeNote, LrRangeStop
from holter.record.signals import (
    LR_RANGE_END,
    LR_RANGE_ERROR,
    LR_RANGE_HELD,
    LR_RANGE_LOSS,
    LR_RANGE_MOVED,
    LR_RANGE_RATE,
    LR_RANGE_START,
)
from holter.record.trials import TrialKind, TrialName

_DIVERGED = 3  # rates in a row far above the start
_SKIPS = 20  # steps in a row that the gradient scaler may skip
_LOOKS = 10  # times a short training is looked at
_LAST = 4  # looks that make its end
_WARM = 0.2  # share of a short training over which the rate rises, where the schedule warms up
_SAMPLES = 128  # to compare by: more batches where they are small
_BATCHES = 8  # but not more than these
_SAME = 1e-3  # relative difference of losses that two machines compute at the same start
_OF_A_SWEEP = (LR_RANGE_RATE, LR_RANGE_LOSS, LR_RANGE_MOVED, LR_RANGE_HELD, LR_RANGE_ERROR)


@dataclass(frozen=True, slots=True)
class _Look:
    """The held batches once more: the mean of their losses, and the error of its change."""

    losses: Values
    error: float

    @property
    def mean(self) -> float:
        return float(self.losses.mean())


class RateTrials:
    """A training that begins again and again from the same start, and its held batches."""

    def __init__(self, setup: Setup, lab: Lab, held: int) -> None:
        self._setup, self._lab = setup, lab
        self.rates = Rates(setup)
        if not self.rates.peak:
            raise InapplicableError("every learning rate is 0")
        self._seed = int(torch.randint(2**31, ()))
        self.held = [cloned(batch) for batch in setup.batches(_enough(setup, held))]
        self._state = State(setup)
        self._weights = [parameter for parameter in setup.phases[0].parameters if parameter.numel()]
        self._buffers = [buffer for model in setup.models.values() for buffer in model.buffers()]
        self._were = [weight.detach().clone() for weight in self._weights]
        self.moved = 0.0
        self._graph = False  # whether the loss itself needs gradients: a penalty on them, say
        self.start = np.zeros(len(self.held))
        try:
            self.start = self._look().losses
        except RuntimeError:
            self._graph = True
            self.start = self._look().losses

    @property
    def configured(self) -> dict[str, float]:
        """What the training sets: the highest rate, that of now, and that it began with."""
        return {"peak": self.rates.peak, "now": self.rates.now, "given": self.rates.given}

    def sweep(self, number: int, ladder: Values) -> Sweep:
        """One sweep up the ladder, until the loss diverges."""
        trial = str(TrialName(TrialKind.SWEEP, str(number)))
        batches = self._begin(number)
        rates, losses, looks, high = [], [], [], 0
        why = "end"
        for rate in self._lab.progress(ladder.tolist(), f"lr-range, {trial}"):
            self.rates.set(rate)
            loss = self._step(batches)
            if loss is None:
                why = "skipped"
                break
            rates.append(rate)
            losses.append(loss)
            looks.append(self._look())
            if not np.isfinite([loss, looks[-1].mean]).all():
                why = "not finite"
                break
            high = high + 1 if looks[-1].mean > self._limit(looks) else 0
            if high == _DIVERGED:
                why = "diverged"
                break
        self._lab.event(LrRangeStop(trial, why, rate=rates[-1] if rates else None))
        self._write(trial, rates, losses)
        means, errors = [look.mean for look in looks], [look.error for look in looks]
        self._lab.write(LR_RANGE_HELD, means, trial=trial)
        self._lab.write(LR_RANGE_ERROR, errors, trial=trial)
        return Sweep(
            np.array(rates), np.array(means), np.array(errors), start=float(self.start.mean())
        )

    def taken_over(self, number: int) -> Sweep | None:
        """Return a sweep that another process has made from this start; None if there is none."""
        trial = str(TrialName(TrialKind.SWEEP, str(number)))
        for run in self._lab.elsewhere:
            if LR_RANGE_HELD not in run or trial not in run[LR_RANGE_HELD]:
                continue
            start = run[LR_RANGE_START][""].values
            if start.shape != self.start.shape or not np.allclose(start, self.start, _SAME):
                self._lab.event(
                    LrRangeNote(
                        f"{trial} began from another start on another machine and was repeated:"
                        " the script sets no seed, or the machines compute differently"
                    )
                )
                continue
            self._lab.take_over(run, _OF_A_SWEEP, trial)
            for event in run.events_of(LrRangeStop):
                if event.what.trial == trial:
                    self._lab.event(event.what)
            self.moved = max(self.moved, float(run[LR_RANGE_MOVED][trial].values[-1]))
            rates, held, errors = (
                run[signal][trial].values.astype(float)
                for signal in (LR_RANGE_RATE, LR_RANGE_HELD, LR_RANGE_ERROR)
            )
            return Sweep(rates, held, errors, start=float(self.start.mean()))
        return None

    def train(self, rate: float, steps: int) -> RateTrial:
        """A short training at one rate, always with the same batches in the same order."""
        trial = str(TrialName(TrialKind.CONFIRM, f"{rate:.4g}"))
        batches = self._begin(-1)
        warm = _WARM * steps if self.rates.now < 0.5 * self.rates.peak else 0.0
        rates, losses, looks = [], [], {}
        for step in self._lab.progress(range(steps), f"lr-range, {trial}"):
            rates.append(rate * min((step + 1) / max(warm, 1), 1.0))
            self.rates.set(rates[-1])
            loss = self._step(batches)
            losses.append(np.nan if loss is None else loss)
            if (step + 1) % max(steps // _LOOKS, 1) == 0:
                looks[step] = self._look()
            if not np.isfinite(losses[-1]):
                break
        self._write(trial, rates, losses)
        for step, look in looks.items():
            self._lab.write(LR_RANGE_HELD, [look.mean], trial=trial, first=step)
            self._lab.write(LR_RANGE_ERROR, [look.error], trial=trial, first=step)
        last = [each.losses for each in list(looks.values())[-_LAST:]]
        fails = len(losses) < steps or not last
        finish = np.full(len(self.held), np.inf) if fails else np.mean(last, axis=0)
        self._lab.write(LR_RANGE_END, [float(each) for each in finish], trial=trial)
        return RateTrial(trial, rate, finish)

    def _begin(self, number: int) -> Iterator[Batch]:
        """Everything as at the start, but for the order of batches and what else is drawn."""
        self._state.restore()
        seed_all(self._setup, self._seed + number)
        stream = self._setup.endless()
        if number > 0 and (count := in_order(self._setup)):  # another part where none is drawn
            next(islice(stream, number * count // 3, None))
        return stream

    def _step(self, batches: Iterator[Batch]) -> float | None:
        """One step that the gradient scaler lets through; None where it lets none."""
        scaler = self._setup.phases[0].scaler
        for _ in range(_SKIPS):
            scale = 0.0 if scaler is None else scaler.get_scale()
            loss = self._setup.step(*islice(batches, self._setup.accumulation))
            if scaler is None or scaler.get_scale() >= scale:
                return loss
        return None

    def _look(self) -> _Look:
        """The held batches as they are now, without a trace in what forward passes gather."""
        gathered = [each.detach().clone() for each in self._buffers]
        with same_randomness(self._setup):
            seed_all(self._setup, self._seed)
            losses = np.array([self._loss(each) for each in self.held])
        for buffer, was in zip(self._buffers, gathered, strict=True):
            buffer.detach().copy_(was)
        changes = losses - self.start
        if not np.isfinite(changes).all():
            return _Look(losses, np.inf)
        error = changes.std(ddof=1) / np.sqrt(len(changes)) if len(changes) > 1 else 0.0
        return _Look(losses, float(error))

    def _loss(self, batch: Batch) -> float:
        with torch.set_grad_enabled(self._graph):
            return float(self._setup.loss(cloned(batch)).detach().float().mean())

    def _limit(self, looks: Sequence[_Look]) -> float:
        """As far above the start as the loss was under it, and more than batches differ by."""
        level, spread = float(self.start.mean()), float(self.start.std())
        return level + (level - min(look.mean for look in looks)) + 4 * spread

    def _write(self, trial: str, rates: Sequence[float], losses: Sequence[float]) -> None:
        moved = self._moved()
        self.moved = max(self.moved, moved)
        self._lab.write(LR_RANGE_RATE, rates, trial=trial)
        self._lab.write(LR_RANGE_LOSS, losses, trial=trial)
        self._lab.write(LR_RANGE_MOVED, [moved], trial=trial)

    def _moved(self) -> float:
        """By how much the weights differ from those of the start, of their norm."""
        pairs = zip(self._weights, self._were, strict=True)
        change = np.linalg.norm([_norm(now.detach() - was) for now, was in pairs])
        norm = np.linalg.norm([_norm(each) for each in self._were])
        moved = float(change / norm) if norm else float(change)
        return moved if np.isfinite(moved) else np.inf


def _norm(tensor: Tensor) -> float:
    return float(torch.linalg.vector_norm(tensor))


def _enough(setup: Setup, least: int) -> int:
    """How many batches to hold: so many at least, and more where they are small."""
    some = setup.batches(1)
    if not some:
        raise InapplicableError("there are no training batches")
    try:
        samples = max(size(some[0]), 1)
    except InapplicableError:  # nothing in it is counted in samples
        samples = _SAMPLES
    return max(least, min(-(-_SAMPLES // samples), _BATCHES))


def in_order(setup: Setup) -> int:
    """How many batches a loader has that delivers them always in the same order; 0 otherwise."""
    loader = setup.loaders.get("train")
    if loader is None or not isinstance(loader.sampler, SequentialSampler):
        return 0
    return len(loader)
