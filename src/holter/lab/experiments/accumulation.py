"""Compare the gradient of a batch with the gradients of its parts."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from holter.lab.batches import as_real, leaves, replaced
from holter.lab.changes.modes import in_eval_mode, in_mode
from holter.lab.experiments import experiment
from holter.lab.experiments._probing.layout import (
    known_loss_call,
    loss_targets,
    samples_of,
    sequences_of,
)
from holter.lab.experiments._probing.probe import Probe, some_batches
from holter.lab.inapplicable import InapplicableError
from holter.lab.randomness import same_randomness
from holter.lab.setup import Batch, Setup
from holter.lab.writing import Lab
from holter.record.signals import (
    ACCUMULATION_BATCHES,
    ACCUMULATION_DEVIATION,
    ACCUMULATION_RESIDUAL,
    ACCUMULATION_SCALE,
    ACCUMULATION_TARGETS,
)

_TINY = 1e-30  # keeps ratios of nothing to nothing at 0


@experiment(
    emits=(
        ACCUMULATION_RESIDUAL,
        ACCUMULATION_SCALE,
        ACCUMULATION_TARGETS,
        ACCUMULATION_BATCHES,
        ACCUMULATION_DEVIATION,
    ),
    preflight=True,
)
def accumulation(setup: Setup, lab: Lab, *, parts: int = 4) -> None:
    """Do the gradients of small batches add up to that of a large one?

    Compares the gradient of one batch with the mean over its parts, in eval mode, where dropout and
    batch norm have no effect. They are equal if the loss is a mean over samples, and proportional
    if it is a sum. It also weights parts by the number of targets that the loss counts. If the
    training accumulates several batches per step, it compares their gradients in the same way.

    `parts`: number of parts, or 2 if the batch is too small.
    """
    batches = some_batches(setup, max(setup.accumulation, 1))
    batch = _Cut(setup, batches[0])
    parts = parts if batch.count >= 2 * parts else 2
    size = batch.count // parts
    order = list(range(size * parts))
    whole = _gradient(setup, batch.take(order))
    if _apart(whole, _gradient(setup, batch.take(order), other_noise=True)) > 0.01:
        raise InapplicableError("the loss draws new random numbers for each batch")
    turned = _apart(whole, _gradient(setup, batch.take(order[::-1])))
    if turned > 0.01:
        raise InapplicableError("the gradient depends on the order of samples")
    pieces = [batch.take(order[part * size :][:size]) for part in range(parts)]
    mean, weighted, counts = _means(setup, pieces)
    scale = _dot(whole, mean) / max(_dot(mean, mean), _TINY)
    residuals = {
        "another order": turned,
        "mean": _apart(whole, mean),
        "scaled mean": _apart(whole, [scale * each for each in mean]),
        "mean by targets": _apart(whole, weighted),
    }
    lab.write_each(ACCUMULATION_RESIDUAL, residuals)
    lab.write(ACCUMULATION_SCALE, [scale])
    lab.write(ACCUMULATION_TARGETS, counts, trial="parts of a batch")
    lab.write(ACCUMULATION_BATCHES, [setup.accumulation])
    if len(batches) > 1:
        mean, weighted, counts = _means(setup, batches)
        lab.write(ACCUMULATION_DEVIATION, [_apart(weighted, mean)])
        lab.write(ACCUMULATION_TARGETS, counts, trial="batches of a step")


class _Cut:
    """A batch of which any samples can be taken."""

    def __init__(self, setup: Setup, batch: Batch) -> None:
        _reject_links(setup, batch)
        named = leaves(batch)
        sequences = sequences_of(named, loss_targets(setup, batch))
        self._batch, self._samples = batch, samples_of(setup, batch, named, sequences)
        self.count = self._samples.count

    def take(self, index: Sequence[int]) -> Batch:
        """The batch with the samples at `index` alone."""
        return replaced(self._batch, self._samples.take(leaves(self._batch), index))


def _reject_links(setup: Setup, batch: Batch) -> None:
    """Decline models that are given something beside samples, as the edges of a graph of them."""
    try:
        probe = Probe(setup, batch)
    except InapplicableError:  # called by parts: what goes in is not known
        return
    samples_of(setup, batch, probe, sequences_of(probe.inputs, loss_targets(setup, batch)))


def _gradient(setup: Setup, batch: Batch, *, other_noise: bool = False) -> list[Tensor]:
    """The gradient of the first phase's loss, with all modules in eval mode."""
    parameters = [parameter for parameter in setup.phases[0].parameters if parameter.requires_grad]
    for parameter in parameters:
        parameter.grad = None
    with same_randomness(setup), in_mode(setup.model, _quiet(setup), training=False):
        if other_noise:
            torch.rand(1, device=setup.device)
            torch.rand(1)
        try:
            loss = setup.loss(batch).mean()
        except Exception as error:
            raise InapplicableError(
                f"the step fails on a part of a batch ({type(error).__name__})"
            ) from error
        if not loss.requires_grad:
            raise InapplicableError("the loss has no gradient")
        loss.backward()  # type: ignore[no-untyped-call]
    found = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    found = [as_real(each).float() for each in found]
    if not all(bool(each.isfinite().all()) for each in found):
        raise InapplicableError("the gradient is not finite")
    return found


def _quiet(setup: Setup) -> list[nn.Module]:
    """All modules but recurrent ones on a GPU, which have no gradient in eval mode."""
    return [
        module
        for module in setup.model.modules()
        if setup.device.type == "cpu" or not isinstance(module, nn.RNNBase) or module.dropout > 0
    ]


def _means(
    setup: Setup, batches: Sequence[Batch]
) -> tuple[list[Tensor], list[Tensor], list[float]]:
    """The mean of the gradients of batches, that weighted by numbers of targets, and these."""
    counts: list[float] = []
    mean: list[Tensor] = []
    weighted: list[Tensor] = []
    for batch in batches:
        gradient = _gradient(setup, batch)
        counts.append(_targets(setup, batch))
        mean = mean or [torch.zeros_like(each) for each in gradient]
        weighted = weighted or [torch.zeros_like(each) for each in gradient]
        torch._foreach_add_(mean, gradient, alpha=1 / len(batches))
        torch._foreach_add_(weighted, gradient, alpha=counts[-1])
    torch._foreach_div_(weighted, sum(counts) or 1.0)
    return mean, weighted, counts


def _targets(setup: Setup, batch: Batch) -> float:
    """The targets that the loss counts, by the weights of their classes; 1 where none are known."""
    with in_eval_mode(setup.model):
        call = known_loss_call(setup, batch)
    target = None if call is None else call.arguments.get("target")
    if call is None or not isinstance(target, Tensor) or "ignore_index" not in call.arguments:
        return 1.0
    if target.is_floating_point():  # probabilities of classes: none is left out
        return 1.0
    counted = target[target != call.arguments["ignore_index"]]
    weight = call.arguments.get("weight")
    return float(counted.numel() if weight is None else weight[counted].sum())


def _dot(one: Sequence[Tensor], other: Sequence[Tensor]) -> float:
    return sum(float((a.double() * b.double()).sum()) for a, b in zip(one, other, strict=True))


def _apart(one: Sequence[Tensor], other: Sequence[Tensor]) -> float:
    """The distance of two gradients, relative to the norm of the first."""
    between = [a - b for a, b in zip(one, other, strict=True)]
    return float((_dot(between, between) / max(_dot(one, one), _TINY)) ** 0.5)
