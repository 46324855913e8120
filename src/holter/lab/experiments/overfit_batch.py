"""Overfit one batch: training on a few samples until they are known by heart, or not."""

import math
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holter.diagnosis.facts.fits import ALIKE, AS_IT_IS, FAR, REACHED, measure
from holter.lab.batches import changed
from holter.lab.boundary import inputs_replaced
from holter.lab.experiments import InapplicableError, experiment
from holter.lab.experiments._overfitting.branches import Branch, Facts, branches
from holter.lab.experiments._overfitting.changes import groups, peaks
from holter.lab.experiments._overfitting.few_samples import (
    Few,
    confirmed,
    few_samples,
    look,
    with_free_floor,
)
from holter.lab.experiments._overfitting.fits import Fitting
from holter.lab.experiments._overfitting.freeing import PASSES
from holter.lab.experiments._overfitting.passes import Pass, forward
from holter.lab.experiments._overfitting.quieting import dropout_off
from holter.lab.experiments._overfitting.sameness import by_sample
from holter.lab.lab import Lab
from holter.lab.setup import Setup
from holter.lab.state import State
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

_MUCH = 0.5  # share of the way at which a learning rate cannot be far off
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
    """Can the model learn a few samples by heart?

    Trains on the same few samples only, with optimizer, learning rate and dropout as they are,
    until the loss is at its floor: the least that smoothed, soft or noisy targets allow, not a
    fixed number. Where it does not get there, each of a list of changes is tried from the same
    start (learning rates, dropout, clipping, a doubled softmax, ...) until one makes it fit.

    - `samples`: how many, spread over the first batch.
    - `steps`: of one trial; three times as many while the loss still falls.
    - `seconds`: for all trials together; half of them for the first.
    """
    if len(setup.phases) > 1:
        raise InapplicableError("the step trains on several losses in turn: they have no floor")
    if any(isinstance(each, torch.optim.LBFGS) for each in setup.optimizers):
        raise InapplicableError("LBFGS steps with a closure, which is not recognised")
    if any("lr" not in group for group in groups(setup)):
        raise InapplicableError("an optimizer has no learning rate that could be set")
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
    _write_facts(setup, lab, few)
    fitting = Fitting(setup, lab, state, steps)
    losses = fitting.losses(
        Branch(AS_IT_IS, setup), few.batch, few.aim, until=began + seconds / 2, patient=True
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
    facts = Facts(
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
    _try_changes(fitting, few, facts, until=began + seconds)


def _try_changes(fitting: Fitting, few: Few, facts: Facts, *, until: float) -> None:
    """One change after the other, until one makes the samples fit or the time is over."""
    setup, lab, state = fitting.setup, fitting.lab, fitting.state
    highest = math.inf
    for branch in branches(facts):
        if branch.factor >= highest:
            continue
        left = until - time.perf_counter()
        if left <= 0:
            lab.event(OutOfTime("overfit-batch", branch.name))
            return
        own = few
        try:
            if branch.batch is not None:
                own = look(setup, state, branch.batch, branch.count)
                lab.write_each(OVERFIT_SAMPLES, {branch.name: branch.count})
                _write_floor(lab, own, branch.name)
            losses = fitting.losses(
                branch, own.batch, own.aim, until=time.perf_counter() + left / 3
            )
        except Exception as error:  # what is changed may not suit this model
            lab.event(TrialFailed(branch.name, f"{type(error).__name__}: {error}"))
            continue
        lab.write(OVERFIT_LOSS, losses, trial=branch.name)
        lab.write_each(OVERFIT_RATE, {branch.name: fitting.rate})
        fit = measure(np.asarray(losses), own.aim)
        if fit.fits and not branch.control:
            return
        if branch.factor > 1 and (fit.lost or fit.last > fit.start):
            highest = branch.factor


def _write_facts(setup: Setup, lab: Lab, few: Few) -> None:
    parameters = [each for model in setup.models.values() for each in model.parameters()]
    trainable = [each for each in parameters if each.requires_grad]
    held = {id(each) for each in setup.parameters(setup.phases[0])}
    counts = {
        OVERFIT_TRAINABLE: sum(each.numel() for each in trainable),
        OVERFIT_HELD: sum(each.numel() for each in trainable if id(each) in held),
        OVERFIT_RATE: peaks(setup)[0],
        OVERFIT_NOISE: few.noise,
    }
    if targets := few.quiet[0].targets(few.count):
        counts[OVERFIT_TARGETS] = targets
    for signal, value in counts.items():
        lab.write_each(signal, {AS_IT_IS: value})
    lab.write_each(OVERFIT_NOISE, {"dropout off": few.quiet_noise})


def _write_floor(lab: Lab, few: Few, trial: str) -> None:
    if isinstance(few.floor, str):
        lab.event(OverfitFloor(trial, unknown=few.floor))
        return
    signal = OVERFIT_FLOOR if few.floor.exact else OVERFIT_FREE_FLOOR
    lab.write_each(signal, {trial: few.floor.least})
    lab.write_each(OVERFIT_CONSTANT, {trial: few.floor.constant})
    lab.event(OverfitFloor(trial, because=few.floor.because))


def _write_afterwards(setup: Setup, lab: Lab, few: Few) -> Pass:
    """What the model knows after the trial, without dropout."""
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
    """The loss of samples that are given the inputs of one another; None where nothing can be."""
    targets = [call.arguments.get("target") for call in usual.calls]
    exchanged = False

    def roll(each: Tensor) -> Tensor:
        nonlocal exchanged
        along = by_sample(each, few.count)
        if along is None or any(_is_same(each, target) for target in targets):
            return each
        exchanged = True
        return each.roll(1, along)

    if few.count < 2 or len(usual.outputs) != 1:
        return None
    with inputs_replaced(
        setup.model, lambda args, kwargs: (changed(args, roll), changed(kwargs, roll))
    ):
        loss = forward(setup, few.batch).loss
    return loss if exchanged else None


def _is_same(one: Tensor, other: Any) -> bool:
    """Whether labels that a model is given are what its loss function is given."""
    return isinstance(other, Tensor) and torch.equal(one.reshape(-1), other.reshape(-1))
