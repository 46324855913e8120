"""Predictions for training samples by models that were not trained on them: cross-validation."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from holter.lab.experiments._evaluation.passing import EvaluatedPass, Values, evaluate_pass
from holter.lab.experiments._samples.datasets import fetch, served
from holter.lab.experiments._samples.holdings import left_alone
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Batch, Setup
from holter.lab.state import State
from holter.lab.writing import Lab
from holter.watching.collectors.loss_calls import Family

_BATCH = 64  # samples, where the loader does not say how many
_TIMED = 3  # steps by which the time is estimated
_PATIENCE = 2  # epochs without a lower loss on the samples left out
_MOST_EPOCHS = 100


@dataclass(frozen=True, slots=True)
class OutOfSample:
    """Label and predicted probabilities of each training sample, by its index in the data set."""

    indices: list[int]
    labels: Values
    probabilities: Values


@dataclass(frozen=True, slots=True)
class _Samples:
    """The training samples, and what makes batches of them."""

    positions: list[int]
    batch_size: int
    collate: Callable[[Sequence[int]], Batch]

    def batches(self, chosen: Sequence[int]) -> Iterator[Batch]:
        """Yield batches of the samples at these places, in this order."""
        for start in range(0, len(chosen), self.batch_size):
            part = chosen[start : start + self.batch_size]
            yield self.collate([self.positions[place] for place in part])


def out_of_sample(
    setup: Setup, lab: Lab, start: State, *, folds: int, seconds: float
) -> OutOfSample:
    """Train once for each fold, from the start, and predict the samples of the fold."""
    samples = _samples(setup)
    count = len(samples.positions)
    if count < 2 * folds:
        raise InapplicableError(f"{count} training samples are too few for {folds} folds")
    begin = _beginning(setup, start)
    order = np.random.default_rng(0).permutation(count)
    parts = [order[number::folds].tolist() for number in range(folds)]
    loader = setup.loaders["train"]
    with left_alone(loader.dataset):
        begin()
        needed = folds * _seconds_per_epoch(setup, samples, order.tolist()) * (1 - 1 / folds)
        if needed > seconds:
            raise InapplicableError(
                f"one epoch for each of {folds} folds takes about {needed:.0f} s; allow more with"
                f" `--option fold-seconds={2 * needed:.0f}`"
            )
        lab.begin(f"training labels: {folds} folds, {needed:.0f} to {seconds:.0f} s")
        found = []
        until = time.perf_counter() + seconds
        for number in lab.progress(range(folds), "fold"):
            begin()
            left = (until - time.perf_counter()) / (folds - number)
            found.append(_fold(setup, samples, parts, number, left))
    probabilities = [one.samples.probabilities for one in found]
    if any(one is None for one in probabilities) or found[0].family is Family.NUMBERS:
        raise InapplicableError("label quality needs one class for each sample")
    return OutOfSample(
        [samples.positions[place] for part in parts for place in part],
        np.concatenate([one.samples.labels for one in found]),
        np.concatenate([one for one in probabilities if one is not None]),
    )


def _samples(setup: Setup) -> _Samples:
    known, loader = served(setup, "train"), setup.loaders.get("train")
    if known is None or loader is None:
        raise InapplicableError("training samples have no indices: there is no map-style data set")
    prepare = setup.prepare
    if prepare is None and setup.source:
        raise InapplicableError("the script's batches cannot be made of chosen samples")

    def collate(indices: Sequence[int]) -> Batch:
        made: Any = loader.collate_fn([fetch(known.dataset, index) for index in indices])
        return made if prepare is None else prepare(made)

    positions = [int(position) for position in np.unique(known.positions)]
    return _Samples(positions, loader.batch_size or _BATCH, collate)


def _beginning(setup: Setup, start: State) -> Callable[[], None]:
    """Return what puts the training back to a state in which it has not seen its samples."""
    if setup.reached:  # the models of a script are as they were before its first step
        return start.restore
    owners = [module for model in setup.models.values() for module in model.modules()]
    own = [module for module in owners if any(True for _ in module.parameters(recurse=False))]
    if not all(callable(getattr(module, "reset_parameters", None)) for module in own):
        raise InapplicableError(
            "the weights may have been trained on these samples, and cannot be drawn again"
        )

    def begin() -> None:
        start.restore()
        for module in own:
            _reset(module)

    return begin


def _reset(module: nn.Module) -> None:
    module.reset_parameters()  # type: ignore[operator]


def _seconds_per_epoch(setup: Setup, samples: _Samples, order: list[int]) -> float:
    began = time.perf_counter()
    chosen = order[: samples.batch_size * (_TIMED + 1)]
    times = []
    for batch in samples.batches(chosen):
        setup.step(batch)
        times.append(time.perf_counter() - began)
    first, steps = times[0], len(times) - 1  # the first one includes what is done once
    each = (times[-1] - first) / steps if steps else first
    return each * len(order) / samples.batch_size


def _fold(
    setup: Setup, samples: _Samples, parts: list[list[int]], number: int, seconds: float
) -> EvaluatedPass:
    """Train on all other parts until this one is predicted best; return those predictions."""
    until = time.perf_counter() + seconds
    others = [place for other, part in enumerate(parts) if other != number for place in part]
    generator = np.random.default_rng(number)
    best: EvaluatedPass | None = None
    lowest, since = np.inf, 0
    for _ in range(_MOST_EPOCHS):
        for batch in samples.batches(generator.permutation(others).tolist()):
            setup.step(batch)
        passed = evaluate_pass(setup, samples.batches(parts[number]), seconds=np.inf)
        loss = float(np.mean(passed.samples.losses))
        since += 1
        if best is None or loss < lowest:
            best, lowest, since = passed, loss, 0
        if since >= _PATIENCE or time.perf_counter() > until:
            break
    assert best is not None
    return best
