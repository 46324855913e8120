"""Overfit one batch: train on a few samples until they are memorised, or not."""

import math
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holter.diagnosis.facts.fits import ALIKE, AS_IT_IS, FAR, REACHED, measure
from holter.lab.batches import changed
from holter.lab.calls import inputs_replaced
from holter.lab.changes import UNCHANGED
from holter.lab.changes.dropout import DROPOUT_OFF, dropout_off
from holter.lab.changes.learning_rate import Rates
from holter.lab.changes.optimizer import parameters_of
from holter.lab.experiments import experiment
from holter.lab.experiments._overfitting.few_samples import (
    Few,
    confirmed,
    few_samples,
    look,
    with_free_floor,
)
from holter.lab.experiments._overfitting.fitting import Fitting
from holter.lab.experiments._overfitting.free_floors import PASSES
from holter.lab.experiments._overfitting.passes import Pass, forward
from holter.lab.experiments._overfitting.planning import PlannedTrial, StepTraits, planned_trials
from holter.lab.experiments._overfitting.sameness import by_sample
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Setup
from holter.lab.state import State
from holter.lab.writing import Lab
from holter.record.events import OutOfTime, OverfitFloor, TrialFailed
from holter.record.signals import (
    OVERFIT_CONSTANT,
    OVERFIT_EXCHANGED,
    OVERFIT_FLOOR,
    OVERFIT_FREE_FLOOR,
    OVERFIT_HELD,
    OVERFIT_LOSS,
    OVERFIT_MOVED,
    OVERFIT_NOISE,
    OVERFIT_QUIET,
    OVERFIT_RATE,
    OVERFIT_REACHED,
    OVERFIT_SAMPLES,
    OVERFIT_SPREAD,
    OVERFIT_TARGETS,
    OVERFIT_TRAINABLE,
)

_MUCH = 0.5  # share of the way beyond which the learning rate cannot be far off
_FOR_FREE = 0.2  # share of the time that the search for a floor may take


@experiment(
    emits=(
        OVERFIT_LOSS,
        OVERFIT_FLOOR,
        OVERFIT_FREE_FLOOR,
        OVERFIT_CONSTANT,
        OVERFIT_NOISE,
        OVERFIT_QUIET,
        OVERFIT_EXCHANGED,
        OVERFIT_SPREAD,
        OVERFIT_SAMPLES,
        OVERFIT_TARGETS,
        OVERFIT_RATE,
        OVERFIT_TRAINABLE,
        OVERFIT_HELD,
        OVERFIT_REACHED,
        OVERFIT_MOVED,
    ),
    preflight=True,
)
def overfit_batch(
    setup: Setup, lab: Lab, *, samples: int = 8, steps: int = 300, seconds: float = 15.0
) -> None:
    """Can the model memorise a few samples?

    Trains on the same few samples, with the training's own optimizer, learning rate and dropout,
    until the loss reaches its floor: the lowest loss that smoothed, soft or noisy targets allow. If
    it does not, changes are tried one at a time from the same start (learning rates, dropout off,
    clipping off, logits instead of probabilities, ...) until one makes it fit.

    - `samples`: number of samples, spread over the first batch.
    - `steps`: steps of one trial; up to three times as many while the loss still falls.
    - `seconds`: time limit for all trials; half of it for the first.
    """
    if len(setup.phases) > 1:
        raise InapplicableError(
            "the step optimises several losses alternately, which have no common floor"
        )
    if any(isinstance(optimizer, torch.optim.LBFGS) for optimizer in setup.optimizers):
        raise InapplicableError("LBFGS needs a closure, which cannot be repeated here")
    rates = Rates(setup)
    began = time.perf_counter()
    state = State(setup)
    few = few_samples(setup, state, samples)
    lab.write_each(OVERFIT_SAMPLES, {AS_IT_IS: few.count})
    if not math.isfinite(few.start):
        lab.write(OVERFIT_LOSS, [few.start], trial=AS_IT_IS)
        return
    spent = (time.perf_counter() - began) / (len(few.passes) + len(few.quiet))
    if 2 * PASSES * spent < _FOR_FREE * seconds:
        few = with_free_floor(setup, state, few)
    _write_facts(setup, lab, few, rates)
    fitting = Fitting(setup, lab, state, steps)
    losses = fitting.losses(
        PlannedTrial(UNCHANGED), few.batch, few.aim, until=began + seconds / 2, patient=True
    )
    lab.write(OVERFIT_LOSS, losses, trial=AS_IT_IS)
    lab.write_each(OVERFIT_REACHED, {AS_IT_IS: fitting.reached})
    lab.write_each(OVERFIT_MOVED, {AS_IT_IS: fitting.moved})
    still, after = fitting.moved == 0, _write_afterwards(setup, lab, few)
    spread = after.spread(few.count)
    few = confirmed(setup, few)
    _write_floor(lab, few, AS_IT_IS)
    fit = measure(np.asarray(losses), few.aim)
    known = few.aim.share(after.loss) >= REACHED  # with dropout off
    if fit.fits or known or (fit.falls and fit.ahead <= FAR and spread > ALIKE):
        return
    traits = StepTraits(
        setup=setup,
        batch=few.batch,
        count=few.count,
        calls=few.quiet[0].calls,
        inputs=few.quiet[0].inputs,
        outputs=few.quiet[0].outputs,
        last_layers=few.quiet[0].last_layers,
        calls_after=after.calls,
        drops=few.drops,
        noisy=few.quiet_noise > 0,
        still=still,
        alike=few.spread <= ALIKE,
        diverged=fit.lost or fit.last > fit.start or spread <= ALIKE < few.spread,
        falls=fit.falls and fit.ahead <= FAR,
        much=fit.share >= _MUCH,
    )
    _try_changes(fitting, few, traits, until=began + seconds)


def _try_changes(fitting: Fitting, few: Few, traits: StepTraits, *, until: float) -> None:
    """Try one change after the other, until one makes the samples fit or time is up."""
    setup, lab, state = fitting.setup, fitting.lab, fitting.state
    highest = math.inf
    for trial in planned_trials(traits):
        if trial.factor >= highest:
            continue
        left = until - time.perf_counter()
        if left <= 0:
            lab.event(OutOfTime("overfit-batch", trial.name))
            return
        own = few
        try:
            if trial.batch is not None:
                own = look(setup, state, trial.batch, trial.count)
                lab.write_each(OVERFIT_SAMPLES, {trial.name: trial.count})
                _write_floor(lab, own, trial.name)
            losses = fitting.losses(trial, own.batch, own.aim, until=time.perf_counter() + left / 3)
        except Exception as error:  # what is changed may not suit this model
            lab.event(TrialFailed(trial.name, f"{type(error).__name__}: {error}"))
            continue
        lab.write(OVERFIT_LOSS, losses, trial=trial.name)
        lab.write_each(OVERFIT_RATE, {trial.name: fitting.rate})
        fit = measure(np.asarray(losses), own.aim)
        if fit.fits and not trial.control:
            return
        if trial.factor > 1 and (fit.lost or fit.last > fit.start):
            highest = trial.factor


def _write_facts(setup: Setup, lab: Lab, few: Few, rates: Rates) -> None:
    parameters = parameters_of(setup)
    trainable = [parameter for parameter in parameters if parameter.requires_grad]
    held = {id(parameter) for parameter in setup.phases[0].parameters}
    counts = {
        OVERFIT_TRAINABLE: sum(each.numel() for each in trainable),
        OVERFIT_HELD: sum(each.numel() for each in trainable if id(each) in held),
        OVERFIT_RATE: rates.peaks[0],
        OVERFIT_NOISE: few.noise,
    }
    if targets := few.quiet[0].targets(few.count):
        counts[OVERFIT_TARGETS] = targets
    for signal, value in counts.items():
        lab.write_each(signal, {AS_IT_IS: value})
    lab.write_each(OVERFIT_NOISE, {str(DROPOUT_OFF.id): few.quiet_noise})


def _write_floor(lab: Lab, few: Few, trial: str) -> None:
    if isinstance(few.floor, str):
        lab.event(OverfitFloor(trial, unknown=few.floor))
        return
    signal = OVERFIT_FLOOR if few.floor.exact else OVERFIT_FREE_FLOOR
    lab.write_each(signal, {trial: few.floor.least})
    lab.write_each(OVERFIT_CONSTANT, {trial: few.floor.constant})
    lab.event(OverfitFloor(trial, because=few.floor.because))


def _write_afterwards(setup: Setup, lab: Lab, few: Few) -> Pass:
    """Measure the trained model without dropout."""
    with dropout_off(setup):
        after = [forward(setup, few.batch) for _ in few.quiet]
        lab.write_each(OVERFIT_QUIET, {AS_IT_IS: float(np.mean([each.loss for each in after]))})
        if (loss := _exchanged(setup, few, after[0])) is not None:
            lab.write_each(OVERFIT_EXCHANGED, {AS_IT_IS: loss})
    spread = after[0].spread(few.count)
    if math.isfinite(spread):
        lab.write_each(OVERFIT_SPREAD, {AS_IT_IS: spread})
    return after[0]


def _exchanged(setup: Setup, few: Few, usual: Pass) -> float | None:
    """Return the loss with inputs swapped between samples, or None if they cannot be."""
    targets = [call.arguments.get("target") for call in usual.calls]
    exchanged = False

    def roll(tensor: Tensor) -> Tensor:
        nonlocal exchanged
        along = by_sample(tensor, few.count)
        if along is None or any(_is_same(tensor, target) for target in targets):
            return tensor
        exchanged = True
        return tensor.roll(1, along)

    if few.count < 2 or len(usual.outputs) != 1:
        return None
    with inputs_replaced(
        setup.entry, lambda args, kwargs: (changed(args, roll), changed(kwargs, roll))
    ):
        loss = forward(setup, few.batch).loss
    return loss if exchanged else None


def _is_same(one: Tensor, other: Any) -> bool:
    """Whether two tensors hold the same labels."""
    return isinstance(other, Tensor) and torch.equal(one.reshape(-1), other.reshape(-1))
