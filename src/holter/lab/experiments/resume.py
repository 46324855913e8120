"""Save a training, load it, and take the same steps both ways."""

import tempfile
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from holter.lab.batches import as_real, cloned
from holter.lab.experiments import experiment
from holter.lab.experiments._repeating.restarting import Checkpoint
from holter.lab.experiments._repeating.saving import checkpoint_parts
from holter.lab.setup import Batch, Setup
from holter.lab.state import State
from holter.lab.writing import Lab
from holter.record.events import NotApplicable, StateUnsaved
from holter.record.signals import (
    CHECKPOINT_SAVED,
    RESUME_DEVIATION,
    RESUME_LOSS,
    RESUME_RATE,
)

_BEFORE, _AFTER = 8, 2  # steps before the checkpoint, and after it
_TINY = 1e-30  # keeps ratios of nothing to nothing at 0
UNINTERRUPTED, REPEATED, EVERYTHING = "uninterrupted", "repeated", "everything loaded"


@experiment(
    emits=(CHECKPOINT_SAVED, RESUME_LOSS, RESUME_DEVIATION, RESUME_RATE),
    preflight=True,
)
def resume(setup: Setup, lab: Lab) -> None:
    """Does training continue from a checkpoint as if it had not been interrupted?

    Reads what `torch.save({...})` in the script holds. Then it takes some steps, saves the states
    of all parts to a file, and takes two more steps. It restarts the training, loads the file and
    takes the same two steps on the same batches: with everything loaded, and without the optimizer,
    the scheduler, the loss scaler, averaged weights and random numbers, one at a time.
    """
    held = checkpoint_parts(setup)
    if isinstance(held, str):
        lab.event(NotApplicable("resume", held, (CHECKPOINT_SAVED.name,)))
    else:
        lab.write_each(CHECKPOINT_SAVED, {part: float(is_held) for part, is_held in held.items()})
    start = State(setup)
    size = setup.accumulation * (_BEFORE + _AFTER)
    batches = list(islice(setup.endless(), size))
    steps = [batches[at : at + setup.accumulation] for at in range(0, size, setup.accumulation)]
    start.restore()
    _train(setup, steps[:_BEFORE])
    with tempfile.TemporaryFile() as file:
        _compare(setup, lab, Checkpoint(setup, start, file), steps[_BEFORE:])


def _compare(setup: Setup, lab: Lab, checkpoint: Checkpoint, steps: list[list[Batch]]) -> None:
    """Write how the steps go uninterrupted, repeated, and from the checkpoint."""
    middle, before = State(setup), _weights(setup)
    whole = _train(setup, steps)
    _write(lab, UNINTERRUPTED, whole, 0.0)
    middle.restore()
    again = _train(setup, steps)
    _write(lab, REPEATED, again, _apart(before, whole, again))
    trials: dict[str, Collection[str]] = {EVERYTHING: ()}
    trials |= {f"without {kind}": (kind,) for kind in checkpoint.kinds}
    trials["weights only"] = checkpoint.kinds
    for trial, without in trials.items():
        checkpoint.load(without=without)
        if trial == EVERYTHING and (names := checkpoint.unsaved()):
            lab.event(StateUnsaved(tuple(names)))
        resumed = _train(setup, steps)
        _write(lab, trial, resumed, _apart(before, whole, resumed))


@dataclass(frozen=True, slots=True)
class _Continued:
    """Some steps: the first loss, the last learning rate, and the weights at the end."""

    loss: float
    rate: float
    weights: list[Tensor]


def _train(setup: Setup, steps: list[list[Batch]]) -> _Continued:
    losses, rate = [], 0.0
    for batches in steps:
        rate = float(setup.optimizers[0].param_groups[0]["lr"])
        losses.append(setup.step(*(cloned(batch) for batch in batches)))
        with warnings.catch_warnings(action="ignore"):  # of torch, on the order of calls
            for scheduler in setup.schedulers:
                by_metric = isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)
                scheduler.step(losses[-1]) if by_metric else scheduler.step()
    return _Continued(losses[0], rate, _weights(setup))


def _weights(setup: Setup) -> list[Tensor]:
    held = [parameter for phase in setup.phases for parameter in phase.parameters]
    return [as_real(each).double() for each in held]


def _apart(before: list[Tensor], whole: _Continued, other: _Continued) -> float:
    """Return the distance between the ends of two trainings over the way of the first."""
    way = sum(float((a - b).square().sum()) for a, b in zip(whole.weights, before, strict=True))
    gap = sum(
        float((a - b).square().sum()) for a, b in zip(whole.weights, other.weights, strict=True)
    )
    return float((gap / max(way, _TINY)) ** 0.5)


def _write(lab: Lab, trial: str, training: _Continued, deviation: float) -> None:
    lab.write(RESUME_LOSS, [training.loss], trial=trial)
    lab.write(RESUME_RATE, [training.rate], trial=trial)
    lab.write(RESUME_DEVIATION, [deviation], trial=trial)
