"""Data sets read sample by sample: what a loader serves of them, and what both splits share."""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    default_collate,
)

from holter.lab.batches import changed, leaves, size, tensors
from holter.lab.calls import own_targets
from holter.lab.experiments._samples.holdings import left_alone
from holter.lab.experiments._samples.parts import DatasetSample, array, sample_of
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Roles, Setup

_NAMES = {"train": "training", "valid": "validation"}
_MOST = 200_000  # positions taken from a sampler of an unknown kind
_TRIED = 4  # samples by which a part that is the index itself is known
_SHOWN = 16  # samples that are described for people


@dataclass(frozen=True, slots=True)
class Served:
    """What a loader serves: positions in its data set, one as often as it is served."""

    dataset: Any
    positions: Sequence[int]
    in_order: bool


@dataclass(frozen=True, slots=True)
class Split:
    """What was read of one split; `served` is None for one that can only be iterated over.

    `arrives` tells whether targets reach the batch as the data set holds them.
    """

    name: str
    length: int
    samples: tuple[DatasetSample, ...]
    served: Served | None
    arrives: bool = True


def served(setup: Setup, split: str) -> Served | None:
    """What the loader of a split serves; None where there is none, or no positions in it."""
    loader = setup.loaders.get(split)
    if loader is None or isinstance(loader.dataset, IterableDataset):
        return None
    dataset: Any = loader.dataset
    sampler = loader.sampler if type(loader.batch_sampler) is BatchSampler else None
    if type(sampler) in (SequentialSampler, RandomSampler):
        return Served(dataset, range(_length(dataset)), isinstance(sampler, SequentialSampler))
    if type(sampler) is SubsetRandomSampler:
        positions: list[Any] = list(sampler.indices)
    else:
        positions = _drawn(loader)
    if not positions or not all(
        isinstance(position, int | np.integer | torch.Tensor) for position in positions
    ):
        return None  # a sampler of keys, or of positions with something beside them
    return Served(dataset, [int(position) for position in positions], False)


def _length(dataset: Any) -> int:
    try:
        return len(dataset)
    except TypeError as error:  # one of Keras, whose loaders never ask for it
        raise InapplicableError(
            f"the data set {type(dataset).__name__} has no length: {error}"
        ) from error


def read(
    setup: Setup, split: str, *, samples: int, seconds: float, ignored: int | None = None
) -> Split:
    """Read some samples of a split, chosen at random, in so much time at most."""
    known = served(setup, split)
    if known is None:
        return _read_batches(setup, split, samples, seconds, ignored)
    positions = known.positions
    if not isinstance(positions, range):
        positions = np.unique(positions).tolist()
    count = min(samples, len(positions))
    chosen = np.random.default_rng(0).choice(len(positions), count, replace=False)
    wanted = [positions[each] for each in chosen.tolist()]
    with left_alone(known.dataset):
        found = _fetched(known.dataset, wanted, seconds, ignored, setup.roles)
    if not found:
        raise InapplicableError(f"the {_NAMES[split]} loader serves no samples")
    return Split(split, len(positions), tuple(found), known, _arrives(setup.loaders[split], found))


def _limit(seconds: float) -> Callable[[], bool]:
    """Return what tells that so much time of the processor, or four times as much in all, is over.

    What is read must not depend on what else a machine does.
    """
    processor, clock = time.thread_time() + seconds, time.perf_counter() + 4 * seconds
    return lambda: time.thread_time() > processor or time.perf_counter() > clock


def _arrives(loader: DataLoader[Any], samples: Sequence[DatasetSample]) -> bool:
    """Whether targets of samples are found again in batches that a `collate_fn` makes of them.

    One that sorts its samples is asked for a batch of each.
    """
    if loader.collate_fn is default_collate:
        return True
    few = samples[:_TRIED]
    if any(each.label is None for each in few):
        return False
    try:
        with left_alone(loader.dataset):
            return _are_in_batch(loader, few) or all(_are_in_batch(loader, [one]) for one in few)
    except Exception:
        return False


def _are_in_batch(loader: DataLoader[Any], samples: Sequence[DatasetSample]) -> bool:
    batch = loader.collate_fn([loader.dataset[each.index] for each in samples])
    wanted = torch.tensor([each.label for each in samples], dtype=torch.float64)
    return any(
        tensor.numel() == len(wanted)
        and torch.equal(tensor.detach().cpu().double().flatten(), wanted)
        for tensor in tensors(batch)
    )


def _fetched(
    dataset: Any, wanted: list[int], seconds: float, ignored: int | None, roles: Roles | None
) -> list[DatasetSample]:
    is_over = _limit(seconds)
    begun = [(each, fetch(dataset, each)) for each in wanted[:_TRIED]]
    spare = _index_places(begun, dataset) if roles is None else frozenset()
    found: list[DatasetSample] = []
    for index, value in chain(begun, ((each, fetch(dataset, each)) for each in wanted[_TRIED:])):
        kept, show = _without(value, spare), len(found) < _SHOWN
        found.append(sample_of(kept, index, ignored=ignored, show=show, roles=roles))
        if is_over():
            break
    return found


def fetch(dataset: Any, index: int) -> Any:
    """One sample, or the reason why there is none."""
    try:
        return dataset[index]
    except Exception as error:
        raise InapplicableError(
            f"{type(dataset).__name__}[{index}] raises {type(error).__name__}: {error}"
        ) from error


def origin(dataset: Any, positions: Sequence[int]) -> tuple[Any, Sequence[int], bool]:
    """The data set that others are parts of, the same positions in it, and if that is known.

    It is not where a data set of its own kind lies between: that may change the order.
    """
    known = True
    while True:
        if isinstance(dataset, Subset):
            inner = dataset.indices
            positions = [int(inner[position]) for position in positions]
            dataset = dataset.dataset
        elif (wrapped := _wrapped(dataset)) is not None:
            dataset, known = wrapped, False
        else:
            return dataset, positions, known


def _drawn(loader: DataLoader[Any]) -> list[Any]:
    """Positions as a sampler of an unknown kind gives them, for one epoch."""
    with left_alone(loader.sampler, loader.batch_sampler):
        if loader.batch_sampler is not None:
            return list(islice(chain.from_iterable(loader.batch_sampler), _MOST))
        return list(islice(loader.sampler, _MOST))


def _read_batches(
    setup: Setup, split: str, samples: int, seconds: float, ignored: int | None
) -> Split:
    """Where there are no positions: the samples of the first batches."""
    batches = setup.train if split == "train" else setup.valid
    if batches is None:
        raise InapplicableError(f"there is no {_NAMES[split]} data")
    is_over = _limit(seconds)
    found: list[DatasetSample] = []
    begun: list[bytes | None] = []
    aims: tuple[int, ...] | None = None
    for batch in batches:
        count, first = size(batch), len(found)
        if aims is None:
            aims = _targets(setup, batch)
        for place in range(min(count, samples - len(found))):
            one, show = _sample(batch, count, place, aims), len(found) < _SHOWN
            found.append(sample_of(one, len(found), ignored=ignored, show=show))
        read = [each.inputs for each in found[first:]]
        if first and read == begun[: len(read)]:  # the same again: all there is
            del found[first:]
            break
        begun = begun or read
        if len(found) >= samples or is_over():
            break
    if not found:
        raise InapplicableError(f"there are no {_NAMES[split]} batches")
    return Split(split, len(found), tuple(found), None)


def _targets(setup: Setup, batch: Any) -> tuple[int, ...]:
    """Which tensors of a batch the model is not given; none where that does not tell."""
    if setup.roles is not None and setup.roles.target in leaves(batch):
        return (list(leaves(batch)).index(setup.roles.target),)
    try:
        aims = {id(each) for each in own_targets(setup, batch)}
    except Exception:  # whether the step works at all is for other experiments to tell
        return ()
    held = tensors(batch)
    return (
        tuple(n for n, each in enumerate(held) if id(each) in aims) if len(aims) < len(held) else ()
    )


def _sample(batch: Any, count: int, place: int, aims: tuple[int, ...]) -> Any:
    """One sample of a batch: inputs and targets apart, where these are known."""
    if not aims and isinstance(batch, dict | tuple | list):
        return _tensors_only(changed(batch, partial(_row, count=count, place=place)))
    if not aims:  # an object with attributes
        named = {re.findall(r"\w+", path)[-1]: each for path, each in leaves(batch).items()}
        return _sample(named, count, place, aims)
    rows = [
        (n in aims, _row(each, count=count, place=place)) for n, each in enumerate(tensors(batch))
    ]
    own = [(is_target, row) for is_target, row in rows if row.shape != (0,)]
    inputs = tuple(row for is_target, row in own if not is_target)
    return inputs, tuple(row for is_target, row in own if is_target)


def _row(tensor: torch.Tensor, *, count: int, place: int) -> torch.Tensor:
    own = tensor.dim() > 0 and len(tensor) == count
    return tensor[place] if own else torch.empty(0)


def _tensors_only(value: Any) -> Any:
    """Without what belongs to a batch as a whole: counters, names, lists of strings."""
    if isinstance(value, dict):
        return {k: made for k, v in value.items() if (made := _tensors_only(v)) is not None}
    if isinstance(value, tuple | list):
        return tuple(made for each in value if (made := _tensors_only(each)) is not None)
    own = isinstance(value, torch.Tensor) and bool(tensors(value)) and value.shape != (0,)
    return value if own else None


def _index_places(begun: list[tuple[int, Any]], dataset: Any) -> frozenset[int]:
    """Parts of a sample that are its own index: `(input, target, index)`."""
    if len(begun) < _TRIED or not all(isinstance(value, tuple | list) for _, value in begun):
        return frozenset()
    _, origins, _ = origin(dataset, [index for index, _ in begun])
    at = [(value, {index, first}) for (index, value), first in zip(begun, origins, strict=True)]
    places = range(min(len(value) for value, _ in at))
    return frozenset(
        place for place in places if all(_whole(value[place]) in known for value, known in at)
    )


def _whole(part: Any) -> int | None:
    made = array(part) if not isinstance(part, tuple | list | dict) else None
    return int(made) if made is not None and made.ndim == 0 and made.dtype.kind in "iu" else None


def _without(value: Any, places: frozenset[int]) -> Any:
    if not places:
        return value
    return tuple(each for place, each in enumerate(value) if place not in places)


def _wrapped(dataset: Any) -> Any:
    """The data set inside one that only changes its samples, as a transform does: of one length."""
    held = vars(dataset).values() if hasattr(dataset, "__dict__") else ()
    inner: list[Any] = [
        each for each in held if isinstance(each, Dataset) and not isinstance(each, IterableDataset)
    ]
    sized = len(inner) == 1 and hasattr(inner[0], "__len__") and hasattr(dataset, "__len__")
    return inner[0] if sized and len(inner[0]) == len(dataset) else None
