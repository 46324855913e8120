"""The learning-rate range test: rising rates from one start, then short trainings at a few."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from holter.diagnosis.facts.rate_range import RangeTest, another, candidates, worth_sweeping
from holter.diagnosis.facts.sweep import Sweep
from holter.lab.boundary import first_loss_call
from holter.lab.experiments import InapplicableError, experiment
from holter.lab.experiments._learning_rates.trials import RateTrials, in_order
from holter.lab.lab import Lab
from holter.lab.setup import Batch, Setup
from holter.record.events import LrRangeNote
from holter.record.signals import (
    LR_RANGE_CONFIGURED,
    LR_RANGE_END,
    LR_RANGE_ERROR,
    LR_RANGE_HELD,
    LR_RANGE_LOSS,
    LR_RANGE_MOVED,
    LR_RANGE_RATE,
    LR_RANGE_START,
)
from holter.watching.loaders import batch_count

_MORE = 3  # short trainings beyond the candidates
_FEW = 10  # batches that do not stand for a data set


@experiment(
    emits=(
        LR_RANGE_RATE,
        LR_RANGE_LOSS,
        LR_RANGE_HELD,
        LR_RANGE_ERROR,
        LR_RANGE_START,
        LR_RANGE_END,
        LR_RANGE_MOVED,
        LR_RANGE_CONFIGURED,
    )
)
def lr_range(
    setup: Setup,
    lab: Lab,
    *,
    start: float = 1e-7,
    end: float = 10.0,
    points: int = 100,
    repeats: int = 3,
    held: int = 4,
    confirm: int = 5,
    steps: int = 150,
) -> None:
    """Which learning rate suits this training?

    Raises the learning rate from step to step until the loss diverges, several times from the same
    start with other orders of batches; then trains a few times for a while at rates about the one
    this suggests, and at the configured one. What counts is the loss of a few held batches, the
    same ones after every step and with the same random numbers: the noise between batches cancels.
    All groups keep their ratio to the first; momentum, clipping, accumulation and loss scaling are
    those of the training.

    - `start`, `end`: the rates of a sweep, in equal ratios.
    - `points`: how many.
    - `repeats`: sweeps; those after the first leave out rates at which it saw nothing.
    - `held`: batches on which the loss is compared; more where they are small.
    - `confirm`: short trainings at rates about the suggestion; 0 for none.
    - `steps`: of each short training.
    """
    if len(setup.phases) > 1:
        raise InapplicableError(
            "the step trains on several losses in turn, as a GAN does: none of them tells which"
            " rate is better"
        )
    if any(isinstance(each, torch.optim.LBFGS) for each in setup.optimizers):
        raise InapplicableError("LBFGS steps with a closure, which is not recognised")
    if not 0 < start < end:
        raise InapplicableError(f"there are no rates between {start:g} and {end:g}")
    trainings = RateTrials(setup, lab, held)
    if not np.isfinite(trainings.start).all():
        raise InapplicableError("the loss is not finite before any step: no rate can mend that")
    lab.write_each(LR_RANGE_CONFIGURED, trainings.configured)
    lab.write(LR_RANGE_START, [float(each) for each in trainings.start])
    for note in _notes(setup, trainings.held, points):
        lab.event(LrRangeNote(note))
    ladder = np.geomspace(start, end, points)
    sweeps: list[Sweep] = []
    for number in range(repeats):
        rates = worth_sweeping(ladder, sweeps[0]) if sweeps else ladder
        sweeps.append(trainings.sweep(number, rates))
    test = RangeTest(trainings.start, tuple(sweeps), trainings.moved)
    if confirm and not test.broken:
        _confirm(trainings, test, confirm, steps)


def _confirm(trainings: RateTrials, test: RangeTest, count: int, steps: int) -> None:
    """Short trainings at the candidates, at some more where they leave it open, as configured."""
    trials = [trainings.train(rate, steps) for rate in candidates(test, count)]
    for _ in range(_MORE):
        trials.sort(key=lambda each: each.rate)
        rate = another(replace(test, trials=tuple(trials)))
        if rate is None:
            break
        trials.append(trainings.train(rate, steps))
    peak = trainings.rates.peak
    if not any(abs(each.rate / peak - 1) < 0.01 for each in trials):
        trainings.train(peak, steps)


def _notes(setup: Setup, held: Sequence[Batch], points: int) -> Iterator[str]:
    """Why what the loader delivers may not stand for the data."""
    loader = setup.loaders.get("train")
    if in_order(setup):
        yield "the loader does not shuffle: a sweep sees the data in the order they are stored in"
    if loader is not None:
        count = batch_count(loader)
        if count is not None and count < _FEW:
            yield f"the loader has {count} batches: a sweep of {points} rates sees each many times"
    classes = [each for batch in held if (each := _classes(setup, batch)) is not None]
    if len(classes) > 1 and all(len(each) > 1 == len(set(each)) for each in classes):
        yield (
            f"each of {len(classes)} batches holds samples of one class only: the data are sorted,"
            " and a rate found on them holds for nothing else"
        )


def _classes(setup: Setup, batch: Batch) -> list[int] | None:
    """The classes of a batch, where its loss function is given some."""
    try:
        call = first_loss_call(setup, batch)
    except RuntimeError:  # a loss that needs gradients itself
        return None
    target = None if call is None else call.arguments.get("target")
    if isinstance(target, Tensor) and not target.is_floating_point():
        return [int(each) for each in target.flatten().tolist()]
    return None
