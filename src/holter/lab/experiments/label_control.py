"""Train with true labels and with shuffled ones, and compare."""

import time
from collections.abc import Iterable
from itertools import islice
from math import ceil

import numpy as np
import torch
from torch import Tensor

from holter.lab.batches import as_real, leaves, replaced, tensors
from holter.lab.changes.learning_rate import warmup_begun
from holter.lab.changes.modes import in_eval_mode
from holter.lab.experiments import experiment
from holter.lab.experiments._probing.layout import Samples, loss_targets, samples_of, sequences_of
from holter.lab.experiments._probing.probe import (
    Probe,
    Tensors,
    loss_of,
    some_batches,
)
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Batch, Setup
from holter.lab.state import State
from holter.lab.writing import Lab
from holter.record.signals import LABEL_FIT, LABEL_HELD_OUT, LABEL_SAMPLES
from holter.record.trials import TrialKind, TrialName
from holter.watching.loaders import batch_count

_TRUE, _ONE = str(TrialKind.TRUE_LABELS), str(TrialKind.ONE_BATCH)
_HELD_OUT = 512  # samples, where there are so many
_FEWEST = 64  # samples that say anything
_MOST = 32  # batches that are held out
_BATCHES = 120  # batches to train on; more steps go through them again
_SLOW = 8  # batches that have to come in time
_BYTES = 2**28  # that may be kept of all batches
_CHANGED = 0.3  # share of the samples that have to get another label
_REPEATED = 0.1  # share of the samples of a batch that were seen before
_TELLS = 4  # standard errors by which a difference is beyond doubt


@experiment(emits=(LABEL_FIT, LABEL_HELD_OUT, LABEL_SAMPLES), preflight=True)
def label_control(
    setup: Setup,
    lab: Lab,
    *,
    steps: int = 60,
    more_steps: int = 240,
    twins: int = 3,
    seconds: float = 30.0,
) -> None:
    """Are true labels easier to learn than shuffled ones?

    Trains with the true labels, and from the same start with labels shuffled within each batch,
    then compares the losses of held-out batches: if labels belong to their inputs, true labels
    generalise better. If there is no difference, it repeats the comparison with more steps and
    several shuffled trainings, and trains on a single batch to check that the model can learn at
    all.

    `steps`: training steps of the first attempt.
    `more_steps`: training steps of the second attempt, and the most on one batch.
    `twins`: shuffled trainings of the second attempt.
    `seconds`: time limit of an attempt; one that would take longer is not made.
    """
    labelled = _Labelled(setup, seconds / 4)
    start = State(setup)
    took = labelled.seconds_a_step()
    if 2 * steps * took > seconds:
        raise InapplicableError(
            f"it would take {2 * steps * took:.0f} s; the limit is {seconds:.0f} s"
        )
    for count, shuffled in ((steps, 1), (more_steps, twins)):
        if (shuffled + 1) * count * took > seconds:
            break
        fits: dict[str, list[float]] = {}
        held: dict[str, list[float]] = {}
        for twin in range(shuffled + 1):
            start.restore()
            trial = str(TrialName(TrialKind.SHUFFLED_LABELS, str(twin))) if twin else _TRUE
            fits[trial], held[trial] = labelled.learn(count, twin)
        if _differ(fits) or _differ(held):
            break
    else:
        start.restore()
        fits[_ONE] = labelled.learn_one(more_steps)
    for trial, losses in fits.items():
        lab.write(LABEL_FIT, losses, trial=trial)
    for trial, losses in held.items():
        lab.write(LABEL_HELD_OUT, losses, trial=trial)
    lab.write(LABEL_SAMPLES, [labelled.held_out])


class _Labelled:
    """Batches to train on and others, of which the labels are known."""

    def __init__(self, setup: Setup, seconds: float) -> None:
        if len(setup.phases) > 1:
            raise InapplicableError("the step optimises several losses alternately")
        self._setup = setup
        (batch,) = some_batches(setup, 1)
        targets = loss_targets(setup, batch)
        inputs = Probe(setup, batch).inputs
        if sequences_of(inputs, targets) is not None:
            raise InapplicableError("the targets are the inputs shifted by one")
        self._names = _label_names(leaves(batch), inputs, targets)
        samples = samples_of(setup, batch, leaves(batch))
        self._dims = {name: samples.dims[name] for name in self._names if name in samples.dims}
        if not self._dims:
            raise InapplicableError("the labels have no batch dimension")
        wanted = min(_MOST, max(2, ceil(_HELD_OUT / samples.count)))
        batches = _new_ones(_some(setup, wanted + _BATCHES, seconds), samples)
        wanted = min(wanted, len(batches) // 2)
        self._others, self._trained = batches[:wanted], batches[wanted:]
        self.held_out = wanted * samples.count
        if wanted < 2 or self.held_out < _FEWEST:
            raise InapplicableError(f"{len(batches)} batches are too few to hold some out")
        if self._share_changed() < _CHANGED:
            raise InapplicableError("the labels of a batch are too alike to shuffle")

    def seconds_a_step(self) -> float:
        """How long a training step takes, at best: others may be busy beside."""
        took = []
        for batch in self._trained[:5]:
            began = time.perf_counter()
            self._setup.step(batch)
            took.append(time.perf_counter() - began)
        return min(took)

    def learn(self, steps: int, twin: int) -> tuple[list[float], list[float]]:
        """The losses of a training, with labels shuffled but for twin 0, and of other batches."""
        fit = []
        with warmup_begun(self._setup):
            for step in range(steps):
                number = step % len(self._trained)
                fit.append(self._setup.step(self._shuffled(self._trained[number], twin, number)))
        model = self._setup.model
        with in_eval_mode(model):
            return fit, [loss_of(self._setup, batch) for batch in self._others]

    def learn_one(self, steps: int) -> list[float]:
        """The losses of a training on one batch, again and again, until half is left."""
        losses: list[float] = []
        with warmup_begun(self._setup):
            while len(losses) < steps and not (losses and losses[-1] < 0.5 * losses[0]):
                losses.append(self._setup.step(self._trained[0]))
        return losses

    def _shuffled(self, batch: Batch, twin: int, number: int) -> Batch:
        if not twin:
            return batch
        generator = torch.Generator().manual_seed(1000 * twin + number)
        orders: dict[int, Tensor] = {}
        labels = {name: each for name, each in leaves(batch).items() if name in self._dims}
        for name, each in labels.items():
            dim = self._dims[name]
            count = each.shape[dim]
            order = orders.setdefault(count, torch.randperm(count, generator=generator))
            labels[name] = each.index_select(dim, order.to(each.device))
        return replaced(batch, labels)

    def _share_changed(self) -> float:
        """The share of samples whose labels are others once they are shuffled."""
        before, after = (leaves(self._shuffled(self._trained[0], twin, 0)) for twin in (0, 1))
        differing = [
            (before[name] != after[name]).movedim(dim, 0).flatten(1).any(1)
            if before[name].dim() > 1
            else before[name] != after[name]
            for name, dim in self._dims.items()
        ]
        return float(torch.stack(differing).any(0).float().mean())


def _differ(losses: dict[str, list[float]]) -> bool:
    """Whether true labels do better than shuffled ones beyond doubt, or something is not finite."""
    gain = np.mean([losses[trial] for trial in losses if trial != _TRUE], 0) - losses[_TRUE]
    return not gain.mean() <= _TELLS * gain.std() / len(gain) ** 0.5


def _some(setup: Setup, count: int, seconds: float) -> list[Batch]:
    """Some training batches of one epoch, fewer where they are slow to come by or large."""
    began, found, taken = time.perf_counter(), [], 0
    loader = setup.loaders.get("train")
    if loader is not None:
        count = min(count, batch_count(loader) or count)
    for batch in islice(setup.train, count):
        found.append(batch)
        taken += sum(tensor.nbytes for tensor in tensors(batch))
        if taken > _BYTES or time.perf_counter() - began > seconds:
            break
    if len(found) < min(count, _SLOW) and time.perf_counter() - began > seconds:
        raise InapplicableError(f"loading is too slow: {len(found)} batches in {seconds:.0f} s")
    return found


def _new_ones(batches: list[Batch], samples: Samples) -> list[Batch]:
    """The batches up to the first that holds samples of those before it."""
    first = leaves(batches[0])
    name = max(samples.dims, key=lambda dim: first[dim].numel())
    seen: set[bytes] = set()
    for number, batch in enumerate(batches):
        rows = as_real(leaves(batch)[name].movedim(samples.dims[name], 0)).cpu().contiguous()
        if not len(rows):  # nothing is left for the last batch
            return batches[:number]
        known = {row.view(torch.uint8).numpy().tobytes() for row in rows.reshape(len(rows), -1)}
        if len(known & seen) > _REPEATED * len(known):
            return batches[:number]
        seen |= known
    return batches


def _label_names(named: Tensors, inputs: Tensors, targets: list[Tensor]) -> list[str]:
    """Those tensors of a batch that the loss compares outputs with."""
    if targets:
        names = [name for name, each in named.items() if _is_among(each, targets)]
    else:  # a loss written by hand: whatever the model is not given
        names = [name for name, each in named.items() if not _is_among(each, inputs.values())]
    if not names:
        raise InapplicableError("the targets are not part of the batch")
    labels = [named[name] for name in names]
    if all(_is_among(each, labels) for each in inputs.values()):
        raise InapplicableError("the targets are the inputs")
    return names


def _is_among(tensor: Tensor, others: Iterable[Tensor]) -> bool:
    """Whether one of the others has the same values, in whatever shape."""
    flat = _flat(tensor)
    return any(
        other.numel() == tensor.numel() and torch.equal(flat, _flat(other)) for other in others
    )


def _flat(tensor: Tensor) -> Tensor:
    return as_real(tensor).flatten().double().cpu()
