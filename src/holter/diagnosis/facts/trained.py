"""The loss that a training has to lower, of one optimizer or of several."""

from typing import TYPE_CHECKING

import numpy as np

from holter.record import Series
from holter.record.events import Resumed
from holter.record.signals import CHECKPOINT_WEIGHTS, LOSS, OPTIMIZER_AGE, PARAMETER_OPTIMIZER

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_OLD = 10  # steps that an optimizer has made before the first one recorded


def recorded_losses(facts: "Facts") -> dict[str, Series]:
    """Return the losses of all optimizers."""
    losses = facts.run[LOSS].items() if LOSS in facts.run else ()
    return {owner: loss for owner, loss in losses if len(loss)}


def trained_loss(facts: "Facts") -> tuple[str, Series] | str:
    """Return the loss that the training has to lower and its owner, or why there is none.

    Optimizers that share a backward pass have one loss. Where optimizers follow each other, as in
    pretraining and distillation, the last one's counts; of others the losses may compete.
    """
    if LOSS not in facts.run:
        return "no loss was recorded"
    losses = recorded_losses(facts)
    if not losses:
        return "no loss was read"
    start = max(loss.first for loss in losses.values())
    (owner, loss), *others = [item for item in losses.items() if item[1].last >= start]
    if all(_are_equal(loss, other) for _, other in others):
        return owner, loss
    count = len(others) + 1
    return f"the losses of {count} optimizers may compete, so neither has to fall"


def stage_start(facts: "Facts") -> int:
    """Return the step at which the last optimizer took over from others; 0 if it is alone."""
    losses = recorded_losses(facts)
    trained = trained_loss(facts)
    if isinstance(trained, str) or len(losses) < 2:
        return 0
    begun = trained[1].first
    return begun if any(loss.last < begun for loss in losses.values()) else 0


def fresh_start(facts: "Facts") -> int:
    """Return the first step of the last training if nothing trained its parameters before, else 0.

    The first loss of a model that is trained after others, as in a cross-validation, is that of
    initial weights. A fine-tuning goes on with weights that were trained.
    """
    start = stage_start(facts)
    if not start or PARAMETER_OPTIMIZER not in facts.run:
        return 0
    rows = facts.run[PARAMETER_OPTIMIZER].rows()
    held = rows.present & (rows.values >= 0)
    earlier, later = held[rows.steps < start].any(axis=0), held[rows.steps >= start].any(axis=0)
    return start if later.any() and not (earlier & later).any() else 0


def continues(facts: "Facts") -> bool:
    """Return whether the training continues an earlier one: from a checkpoint, or as a resumed run.

    A loss that stays where it is may be that of a model that has converged.
    """
    if facts.run.events_of(Resumed) or _begins_late(facts):
        return True
    loaded = facts.run[CHECKPOINT_WEIGHTS].values() if CHECKPOINT_WEIGHTS in facts.run else ()
    ages = facts.run[OPTIMIZER_AGE].values() if OPTIMIZER_AGE in facts.run else ()
    return any(len(share) and share.values[0] > 0.5 for share in loaded) or any(
        len(age) and age.values[0] - age.first > _OLD for age in ages
    )


def _begins_late(facts: "Facts") -> bool:
    """Return whether a log begins in the middle of a training: later than it has gaps."""
    if facts.run.meta.source is None:
        return False
    losses = [loss for loss in recorded_losses(facts).values() if len(loss) > 1]
    return any(loss.first > _OLD * np.diff(loss.steps).max() for loss in losses)


def _are_equal(one: Series, other: Series) -> bool:
    return np.array_equal(one.steps, other.steps) and np.array_equal(
        one.values, other.values, equal_nan=True
    )
