"""Whether the parts of a batch belong together: rows of inputs beside the targets of their samples.

Samples are collated, and each row is looked for among them. Where a row of the inputs is that of
one sample and the row of the targets that of another, the `collate_fn` has parted them.
"""

import copy
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, default_collate

from holter.lab.batches import leaves
from holter.lab.experiments._samples.datasets import Split
from holter.lab.experiments._samples.holdings import left_alone
from holter.lab.experiments._samples.parts import TARGET_NAMES, Array, array, paths
from holter.lab.setup import Roles, Setup

_SAMPLES = 16


def mispaired(setup: Setup, loader: DataLoader[Any], split: Split) -> float | None:
    """Return the share of samples that get the target of another one; None if it is not known."""
    if loader.collate_fn is default_collate:
        return None
    indices = [sample.index for sample in split.samples[:_SAMPLES]]
    if split.served is None or len(indices) < 4:
        return None
    with left_alone(loader.dataset):
        samples = [loader.dataset[index] for index in indices]
        held = [{path: array(leaf) for path, leaf in paths(sample)} for sample in samples]
        batch = leaves(loader.collate_fn(copy.deepcopy(samples)))
    roles = setup.roles or _guessed(batch)
    target = None if roles is None else batch.get(roles.target)
    if roles is None or target is None or len(target) != len(held):
        return None
    aims = _origins(target, held)
    places = [path for path in roles.inputs or batch if path != roles.target and path in batch]
    for path in places:
        rows = _origins(batch[path], held) if len(batch[path]) == len(held) else None
        if rows is None or aims is None or any(len(row) != 1 for row in rows):
            continue
        apart = [not (row & aim) for row, aim in zip(rows, aims, strict=True)]
        return sum(apart) / len(apart)
    return None


def _guessed(batch: dict[str, torch.Tensor]) -> Roles | None:
    """Return which tensor is the target by its name, or else because it is the last."""
    names = {path: path.strip("[]'\".").lower() for path in batch}
    aims = [path for path, name in names.items() if name in TARGET_NAMES]
    is_tuple = all(name.isdigit() for name in names.values())
    if len(batch) < 2 or not (len(aims) == 1 or is_tuple):
        return None
    return Roles(aims[0] if aims else list(batch)[-1])


def _origins(rows: torch.Tensor, held: list[dict[str, Array | None]]) -> list[set[int]] | None:
    """Return which samples each row may be of; None unless all come from one part of samples.

    Together the rows have to be all of that part, so that nothing but their order has changed.
    """
    numbers = [row.detach().cpu().double().numpy().reshape(-1) for row in rows]
    for path in held[0]:
        parts = [sample.get(path) for sample in held]
        flat = [None if part is None else part.astype(np.float64).reshape(-1) for part in parts]
        if any(part is None for part in flat):
            continue
        found = [_longest(row, flat) for row in numbers]
        if all(found) and set.union(*found) == set(range(len(held))):
            return found
    return None


def _longest(row: Array, parts: list[Array | None]) -> set[int]:
    """Return which parts a row may be: of those that it begins with, the longest."""
    sizes = {n: part.size for n, part in enumerate(parts) if part is not None and _is(row, part)}
    most = max(sizes.values(), default=0)
    return {n for n, size in sizes.items() if size == most}


def _is(row: Array, part: Array) -> bool:
    """Whether a row is a part of a sample, filled up with one number."""
    if part.size > row.size or not part.size:
        return False
    rest = row[part.size :]
    if rest.size and (rest != rest[0]).any():
        return False
    return bool(np.allclose(row[: part.size], part, rtol=1e-5, atol=1e-6))
