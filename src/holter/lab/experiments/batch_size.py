"""Which batch size suits the training: gradient noise, and what fits into memory."""

import math
from collections import Counter
from collections.abc import Sequence

import torch
from torch.optim import LBFGS

from holter.lab.batches import size, take
from holter.lab.experiments import experiment
from holter.lab.experiments._geometry.memory import largest_by_estimate, largest_by_trying
from holter.lab.experiments._geometry.noise import NoiseScale, noise_scale, sketch
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Batch, Setup
from holter.lab.state import State
from holter.lab.writing import Lab
from holter.record.signals import BATCH_LARGEST, BATCH_NOISE_SCALE, BATCH_SIZE

_FEWEST = 8  # batches, or parts of them, that are compared


@experiment(emits=(BATCH_SIZE, BATCH_NOISE_SCALE, BATCH_LARGEST))
def batch_size(
    setup: Setup,
    lab: Lab,
    *,
    batches: int = 64,
    steps: int = 100,
    memory: bool = True,
    doublings: int = 10,
    seed: int = 0,
) -> None:
    """Which batch size suits this training, and how does the learning rate go with it?

    Compares the gradients of batches of one epoch, at the start and after some training. The noise
    scale is the batch size at which noise and gradient are equally large (McCandlish et al. 2018),
    with a 95 % bootstrap interval. Below it, twice the batch size halves the steps and allows twice
    the learning rate with SGD, about 1.4 times with Adam; far above it, a larger batch only costs
    more. It grows during training. Then it searches for the largest batch that fits into memory: on
    a GPU by steps with doubled batches, elsewhere by the memory that a sample takes. Only the first
    of several losses is used.

    - `batches`: maximum number of gradients to compare; batches are split if an epoch has few.
    - `steps`: training steps between the two measurements.
    - `memory`: whether to search for the largest batch that fits.
    - `doublings`: maximum number of doublings in that search.
    - `seed`: seed of the bootstrap.
    """
    found = _of_one_size(setup, batches)
    samples = _samples(setup, found[0])
    lab.write(BATCH_SIZE, [samples * setup.accumulation])
    parts, small = _parts(setup, found, samples)
    population = _population(setup)
    start = State(setup)
    for made in dict.fromkeys((0, steps)):
        _train(setup, lab, made)
        measured = _measure(setup, lab, parts, small, population=population, seed=seed)
        start.restore()
        ends = {"estimate": measured.value, "lower": measured.lower, "upper": measured.upper}
        for trial, value in ends.items():
            lab.write(BATCH_NOISE_SCALE, [value], trial=trial, first=made)
    if memory and samples == size(found[0]):
        tried = setup.device.type == "cuda"
        largest = largest_by_trying if tried else largest_by_estimate
        for trial, count in largest(setup, found[0], doublings).items():
            lab.write(BATCH_LARGEST, [count * setup.accumulation], trial=trial)


def _of_one_size(setup: Setup, count: int) -> list[Batch]:
    """Batches of one epoch that have the same number of samples."""
    found = setup.batches(count)
    if not found:
        raise InapplicableError("there are no training batches")
    if population := _population(setup):  # what is captured from a script may be many epochs
        found = found[: max(population // _samples(setup, found[0]), 1)]
    sizes = [size(each) for each in found]
    usual = Counter(sizes).most_common(1)[0][0]
    return [each for each, samples in zip(found, sizes, strict=True) if samples == usual]


def _samples(setup: Setup, batch: Batch) -> int:
    """The samples of a batch; the loader knows better where they are not in the first dimension."""
    loader = setup.loaders.get("train")
    if loader is None or loader.batch_size is None:
        return size(batch)
    return min(loader.batch_size, _population(setup) or loader.batch_size)


def _parts(setup: Setup, batches: Sequence[Batch], samples: int) -> tuple[list[Batch], int]:
    """The batches or, where they are few, equal parts of them; and how large each is."""
    pieces = math.ceil(_FEWEST / len(batches))
    if pieces == 1:
        return list(batches), samples
    small = samples // pieces
    # A graph is no row of samples, and a sequence may come first: only what a loader has stacked.
    if not small or size(batches[0]) != samples or "train" not in setup.loaders:
        raise InapplicableError(
            f"an epoch has {len(batches)} batches of {samples}: too few gradients to compare"
        )
    order = torch.randperm(samples, generator=torch.Generator().manual_seed(0))
    places = [order[small * n : small * (n + 1)] for n in range(pieces)]
    return [take(batch, place) for batch in batches for place in places], small


def _population(setup: Setup) -> int | None:
    """How many samples an epoch has, where it is known."""
    loader = setup.loaders.get("train")
    try:
        return None if loader is None else len(loader.dataset)  # type: ignore[arg-type]
    except TypeError:
        return None


def _train(setup: Setup, lab: Lab, steps: int) -> None:
    if any(isinstance(optimizer, LBFGS) for optimizer in setup.optimizers):
        return
    train = setup.endless()
    for _ in lab.progress(range(steps), "training"):
        setup.step(*(next(train) for _ in range(setup.accumulation)))


def _measure(
    setup: Setup,
    lab: Lab,
    batches: Sequence[Batch],
    samples: int,
    *,
    population: int | None,
    seed: int,
) -> NoiseScale:
    held = {
        id(parameter): parameter
        for parameter in setup.phases[0].parameters
        if parameter.requires_grad
    }
    parameters = list(held.values())
    kept = []
    for batch in lab.progress(batches, "gradients"):
        loss = setup.loss(batch).mean()
        if not parameters or not loss.requires_grad:
            raise InapplicableError("the loss has no gradient")
        gradients = torch.autograd.grad(loss, parameters, materialize_grads=True)
        kept.append(sketch(gradients, seed=seed))
    rows = torch.stack(kept).double()
    if not rows.isfinite().all():
        raise InapplicableError("gradients are not finite")
    return noise_scale((rows @ rows.T).cpu().numpy(), samples, population=population, seed=seed)
