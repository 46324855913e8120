"""The learning-rate range test: rising rates from one start, then short trainings at a few."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from holter.diagnosis.facts.rate_range import RangeTest
from holter.diagnosis.facts.sweep import Sweep
from holter.lab.calls import first_loss_call
from holter.lab.experiments import experiment
from holter.lab.experiments._learning_rates.planning import another, candidates, worth_sweeping
from holter.lab.experiments._learning_rates.trials import RateTrials, in_order
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Batch, Setup
from holter.lab.sharing import WHOLE
from holter.lab.writing import Lab
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
_FEW = 10  # batches below which a sweep repeats them often


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

    Raises the learning rate at every step until the loss diverges, several times from the same
    start with different batch orders. Then trains briefly at rates around the suggested one, and at
    the configured one. The loss is measured on a few held-out batches, the same after every step
    and with the same random numbers, so that the noise between batches cancels. Parameter groups
    keep their ratios; momentum, clipping, accumulation and loss scaling are those of the training.

    - `start`, `end`: lowest and highest rate of a sweep, on a log scale.
    - `points`: number of rates in a sweep.
    - `repeats`: number of sweeps; later ones skip rates at which the first showed nothing.
    - `held`: number of batches to measure the loss on; more if they are small.
    - `confirm`: number of short trainings around the suggestion; 0 for none.
    - `steps`: steps of each short training.
    """
    if len(setup.phases) > 1:
        raise InapplicableError(
            "the step optimises several losses alternately, as a GAN does: none of them measures"
            " which rate is better"
        )
    if any(isinstance(optimizer, torch.optim.LBFGS) for optimizer in setup.optimizers):
        raise InapplicableError("LBFGS needs a closure, which cannot be repeated here")
    if not 0 < start < end:
        raise InapplicableError(f"there are no rates between {start:g} and {end:g}")
    trainings = RateTrials(setup, lab, held)
    if not np.isfinite(trainings.start).all():
        raise InapplicableError(
            "the loss is not finite before the first step, at any learning rate"
        )
    lab.write_each(LR_RANGE_CONFIGURED, trainings.configured)
    lab.write(LR_RANGE_START, [float(each) for each in trainings.start])
    for note in _notes(setup, trainings.held, points):
        lab.event(LrRangeNote(note))
    ladder = np.geomspace(start, end, points)
    sweeps: list[Sweep] = []
    for number in filter(lab.share.holds, range(repeats)):
        rates = worth_sweeping(ladder, sweeps[0]) if sweeps else ladder
        sweeps.append(trainings.taken_over(number) or trainings.sweep(number, rates))
    if lab.share != WHOLE:
        return
    test = RangeTest(trainings.start, tuple(sweeps), trainings.moved)
    if confirm and not test.broken:
        _confirm(trainings, test, confirm, steps)


def _confirm(trainings: RateTrials, test: RangeTest, count: int, steps: int) -> None:
    """Train briefly at the candidates, at more if the best is at an edge, and as configured."""
    trials = [trainings.train(rate, steps) for rate in candidates(test, count)]
    for _ in range(_MORE):
        trials.sort(key=lambda trial: trial.rate)
        rate = another(replace(test, trials=tuple(trials)))
        if rate is None:
            break
        trials.append(trainings.train(rate, steps))
    peak = trainings.rates.peak
    if not any(abs(trial.rate / peak - 1) < 0.01 for trial in trials):
        trainings.train(peak, steps)


def _notes(setup: Setup, held: Sequence[Batch], points: int) -> Iterator[str]:
    """Yield reasons why the batches may not be representative."""
    loader = setup.loaders.get("train")
    if in_order(setup):
        yield "the loader does not shuffle: a sweep sees the data in storage order"
    if loader is not None:
        count = batch_count(loader)
        if count is not None and count < _FEW:
            yield f"the loader has {count} batches: a sweep of {points} rates sees each many times"
    classes = [each for batch in held if (each := _classes(setup, batch)) is not None]
    if len(classes) > 1 and all(len(each) > 1 == len(set(each)) for each in classes):
        yield (
            f"each of {len(classes)} batches holds a single class: the data is sorted by class, and"
            " the suggested rate may not apply to shuffled data"
        )


def _classes(setup: Setup, batch: Batch) -> list[int] | None:
    """Return the classes of a batch if its loss function gets class indices, or None."""
    try:
        call = first_loss_call(setup, batch)
    except RuntimeError:  # a loss that needs gradients itself
        return None
    target = None if call is None else call.arguments.get("target")
    if isinstance(target, Tensor) and not target.is_floating_point():
        return [int(each) for each in target.flatten().tolist()]
    return None
