"""Random augmentation: whether validation has it too, and whether workers repeat each other."""

import multiprocessing
import random
import time
import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, get_worker_info

from holter.lab.experiments import experiment
from holter.lab.experiments._samples.datasets import Served, served
from holter.lab.experiments._samples.draws import (
    Draw,
    are_paired,
    draw,
    draw_pair,
    have_partners,
    nearer,
    wandering,
)
from holter.lab.experiments._samples.holdings import left_alone
from holter.lab.experiments._samples.moves import IDENTITY, Pair, moves
from holter.lab.experiments._samples.parts import digest, parts
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Roles, Setup
from holter.lab.writing import Lab
from holter.record.events import NotApplicable
from holter.record.signals import (
    REFETCH_INPUTS,
    REFETCH_JUDGED,
    REFETCH_NEARER,
    REFETCH_OWN,
    REFETCH_SAMPLES,
    REFETCH_TARGETS,
    REFETCH_TARGETS_LIKE_INPUTS,
    REFETCH_TORN,
    REFETCH_UNEXPLAINED,
    REFETCH_WANDERING,
    REFETCH_WITHIN_CLASSES,
    WORKERS,
    WORKERS_ALIKE,
    WORKERS_DRAWS,
    WORKERS_EPOCHS_ALIKE,
    WORKERS_INIT,
    WORKERS_PERSISTENT,
)

_DRAWS = 24  # samples that each of two workers fetches
_PATIENCE = 30  # seconds that a worker may take for one sample
_VERSIONS = 6  # of a sample, to see whether it moves away from what it was
_OTHERS = 160  # samples among which others of the same class are looked for
_DENSE = 12  # samples with dense targets that are fetched more often
_TURNS = 8  # versions of each
_JUDGED = 8  # pairs of versions of which the flips are clear


@experiment(
    emits=(
        *(REFETCH_SAMPLES, REFETCH_INPUTS, REFETCH_TARGETS, REFETCH_TARGETS_LIKE_INPUTS),
        *(REFETCH_NEARER, REFETCH_WITHIN_CLASSES, REFETCH_UNEXPLAINED, REFETCH_OWN),
        *(REFETCH_WANDERING, REFETCH_TORN, REFETCH_JUDGED),
        *(WORKERS, WORKERS_PERSISTENT, WORKERS_INIT),
        *(WORKERS_DRAWS, WORKERS_ALIKE, WORKERS_EPOCHS_ALIKE),
    ),
    preflight=True,
)
def augmentation(
    setup: Setup, lab: Lab, *, samples: int = 16, seconds: float = 2.0, workers: bool = True
) -> None:
    """Is augmentation random in training only, and different in every worker?

    Fetches the same samples twice and compares them. Samples that differ although random numbers
    are the same are fetched several times: an augmentation that works in place accumulates. So are
    training samples with dense targets, such as masks: flips and rotations must be the same for
    both. If training samples are random by other means than the generators that torch seeds in each
    worker, it starts two real workers, twice, and compares what they make of the same samples.

    `samples`: number of samples per split that are fetched twice.
    `seconds`: time limit per split.
    `workers`: whether to start workers where they have to be compared.
    """
    train, valid = served(setup, "train"), served(setup, "valid")
    if train is None and valid is None:
        raise InapplicableError("no loader has a data set whose samples can be fetched again")
    if train is not None:
        is_random = _refetch(lab, "train", train, samples, seconds, roles=setup.roles)
        if workers:
            _workers(lab, setup.loaders["train"], train, samples, is_random=is_random)
    if valid is not None:
        _refetch(lab, "valid", valid, samples, seconds, roles=setup.roles)


def _refetch(
    lab: Lab, name: str, split: Served, samples: int, seconds: float, *, roles: Roles | None
) -> bool:
    """Fetch samples twice; whether any of them differ."""
    until = time.perf_counter() + seconds
    pairs: list[tuple[Draw, Draw]] = []
    chosen = _chosen(split, samples)
    with left_alone(split.dataset):
        for index in chosen:
            pairs.append((draw(split.dataset, index, roles), draw(split.dataset, index, roles)))
            if time.perf_counter() > until:
                break
    if any(one.inputs is None for one, _ in pairs):
        raise InapplicableError("inputs of these samples cannot be compared")
    differ = [one.inputs != two.inputs for one, two in pairs]
    lab.write(REFETCH_SAMPLES, [len(pairs)], trial=name)
    lab.write(REFETCH_INPUTS, [float(np.mean(differ))], trial=name)
    if all(one.targets is not None for one, _ in pairs):
        changed = [one.targets != two.targets for one, two in pairs]
        lab.write(REFETCH_TARGETS, [float(np.mean(changed))], trial=name)
    like = [bool(one.shape) and one.shape == one.target_shape for one, _ in pairs]
    lab.write(REFETCH_TARGETS_LIKE_INPUTS, [float(np.mean(like))], trial=name)
    if name == "train" and (any(differ) or any(one.targets != two.targets for one, two in pairs)):
        _torn(lab, split, dict(zip(chosen, pairs, strict=False)), until, roles)
    if any(differ):
        indices = [index for index, each in zip(chosen, differ, strict=False) if each]
        versions = [pair for pair, each in zip(pairs, differ, strict=True) if each]
        _versions(lab, name, split, versions, until)
        unexplained = [_differs(split.dataset, index, own=True) for index in indices]
        lab.write(REFETCH_UNEXPLAINED, [float(np.mean(unexplained))], trial=name)
        if all(unexplained):  # the versions may not be independent
            with left_alone(split.dataset):
                made = [[draw(split.dataset, each) for _ in range(_VERSIONS)] for each in indices]
            if (ratio := wandering(made)) is not None:
                lab.write(REFETCH_WANDERING, [ratio], trial=name)
    return any(differ)


def _torn(
    lab: Lab, split: Served, pairs: dict[int, tuple[Draw, Draw]], until: float, roles: Roles | None
) -> None:
    """Fetch samples with dense targets again; compare the flips of inputs with those of targets."""
    last: dict[int, Pair] = {}
    found: list[tuple[str, str]] = []
    alike = False
    for index, (one, two) in pairs.items():
        if one.dense is not None and two.dense is not None:
            last[index] = two.dense
            alike = alike or two.dense.alike
            found += moves(one.dense, two.dense)
    with left_alone(split.dataset):
        for index in [*last][:_DENSE] * (_TURNS - 2):
            if time.perf_counter() > until:
                break
            if (made := draw_pair(split.dataset, index, roles)) is not None:
                found += moves(last[index], made)
                last[index] = made
    if len(found) < _JUDGED:
        return
    torn = [given != target for given, target in found]
    both = all(any(move != IDENTITY for move in part) for part in zip(*found, strict=True))
    if any(torn) and both and alike and not are_paired(roles):
        return  # these may be two views of a sample, or images of two domains
    lab.write(REFETCH_JUDGED, [len(found)], trial="train")
    lab.write(REFETCH_TORN, [float(np.mean(torn))], trial="train")


def _versions(
    lab: Lab, name: str, split: Served, pairs: list[tuple[Draw, Draw]], until: float
) -> None:
    """Compare the two of each sample with others, of the same class if there are enough."""
    ones = [one for one, _ in pairs]
    others: list[Draw] = []
    if all(one.is_class for one in ones):
        with left_alone(split.dataset):
            for index in _chosen(split, _OTHERS)[len(ones) :]:
                if have_partners(ones, others) or time.perf_counter() > until:
                    break
                others.append(draw(split.dataset, index))
        within = have_partners(ones, others)
        lab.write(REFETCH_WITHIN_CLASSES, [float(within)], trial=name)
    share = nearer(pairs, others)
    if share is not None:
        lab.write(REFETCH_NEARER, [share], trial=name)


def _chosen(split: Served, samples: int) -> list[int]:
    count = min(samples, len(split.positions))
    places = np.random.default_rng(0).choice(len(split.positions), count, replace=False)
    return list(dict.fromkeys(split.positions[each] for each in places.tolist()))


def _differs(dataset: Any, index: int, *, own: bool) -> bool:
    """Whether a sample differs from itself though random numbers are the same."""
    found = []
    for _ in range(2):
        _seed()
        with left_alone(dataset) if own else nullcontext():
            found.append(draw(dataset, index).inputs)
    return found[0] != found[1]


def _seed() -> None:
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


def _workers(
    lab: Lab, loader: DataLoader[Any], split: Served, samples: int, *, is_random: bool
) -> None:
    init = loader.worker_init_fn is not None
    lab.write(WORKERS, [loader.num_workers], trial="train")
    lab.write(WORKERS_PERSISTENT, [float(loader.persistent_workers)], trial="train")
    lab.write(WORKERS_INIT, [float(init)], trial="train")
    if not loader.num_workers or not is_random:
        return
    chosen = _chosen(split, samples)
    with left_alone(split.dataset):
        own = float(np.mean([_differs(split.dataset, each, own=False) for each in chosen]))
    lab.write(REFETCH_OWN, [own], trial="train")
    if not own and not init:
        return  # torch seeds each worker, and each epoch, differently
    how = (loader.multiprocessing_context or multiprocessing.get_context()).get_start_method()
    if how != "fork":
        _absent(lab, f"workers are started by {how}, which would run the script again")
        return
    drawn = [chosen[each % len(chosen)] for each in range(_DRAWS)]
    try:
        first, again = _in_workers(loader, split, drawn), _in_workers(loader, split, drawn)
    except RuntimeError as error:  # a worker that died, or does not answer
        _absent(lab, f"workers could not be compared: {error}")
        return
    lab.write(WORKERS_DRAWS, [len(drawn)], trial="train")
    lab.write(WORKERS_ALIKE, [_alike(first[0], first[1])], trial="train")
    lab.write(WORKERS_EPOCHS_ALIKE, [_alike(first[0], again[0])], trial="train")


def _absent(lab: Lab, why: str) -> None:
    signals = (WORKERS_DRAWS, WORKERS_ALIKE, WORKERS_EPOCHS_ALIKE)
    lab.event(NotApplicable("augmentation", why, tuple(signal.name for signal in signals)))


def _in_workers(
    loader: DataLoader[Any], split: Served, indices: list[int]
) -> dict[int, list[bytes | None]]:
    """The digests of the same samples as two workers of a loader make them."""
    twice = [[index] for index in indices for _ in range(2)]  # one for each, in turn
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forks, of few cores
        probe = DataLoader(
            split.dataset,
            batch_sampler=twice,
            collate_fn=_digest_of,
            num_workers=2,
            worker_init_fn=loader.worker_init_fn,
            multiprocessing_context=loader.multiprocessing_context,
            timeout=_PATIENCE,
        )
        found: dict[int, list[bytes | None]] = {0: [], 1: []}
        for worker, made in probe:
            found[worker].append(made)
    return found


def _digest_of(batch: list[Any]) -> tuple[int, bytes | None]:
    worker = get_worker_info()
    assert worker is not None
    return worker.id, digest(parts(batch[0])[0])


def _alike(one: list[bytes | None], other: list[bytes | None]) -> float:
    return float(np.mean([a == b for a, b in zip(one, other, strict=True)]))
