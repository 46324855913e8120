"""What a rate is worth: the held loss after training with it for a fixed number of steps."""

import math
from itertools import islice

import torch

from bench.lr_range.workloads import Task, task

STEPS = 300
_SCORED = (225, 250, 275, 300)  # after so many steps the held loss is read; the score is their mean


def score(name: str, seed: int, rate: float, *, noisy: bool, order: int = 0) -> float:
    """The mean held loss over the last quarter of a training at that rate of the first group.

    It is infinite where the training fails. With a rate of 0 it is that of the start. Another
    `order` is that of the batches.
    """
    made = task(name, seed, noisy=noisy)
    first = made.optimizer.param_groups[0]["lr"]
    for group in made.optimizer.param_groups:
        group["lr"] *= rate / first
    if not rate:
        return _held(made)
    torch.manual_seed(10 * seed + order)
    setup = made.setup()
    made.model.train()
    found = []
    for number, batch in enumerate(islice(setup.endless(), STEPS), 1):
        if not math.isfinite(setup.step(batch)):
            return math.inf
        if number in _SCORED:
            found.append(_held(made))
    return sum(found) / len(found)


def _held(made: Task) -> float:
    made.model.eval()
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        values = [float(made.loss(made.model, batch)) for batch in made.held]
    made.model.train()
    mean = sum(values) / len(values)
    return mean if math.isfinite(mean) else math.inf
