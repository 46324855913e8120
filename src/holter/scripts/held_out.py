"""A script's loss on rows of its loaders, or on rows that its model was given, for baselines.

The recorded call of the model tells which tensors of a batch become which arguments, and which one
becomes the target of the loss function.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from holter.lab.batches import leaves, replaced, tensors
from holter.lab.experiments._baselines.rows import FEWEST
from holter.lab.experiments._samples.datasets import served
from holter.lab.experiments._samples.holdings import left_alone
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Setup
from holter.scripts.keepsake import TrainingCall, same_numbers
from holter.scripts.rows import RowBatch, Rows
from holter.scripts.scores import flexible_scores

_ROWS = {"train": 1200, "valid": 600}
_BATCH = 64
_KNOWN = 0.05  # share of training rows that may be among rows that are held out


def rows_setup(
    setup: Setup, model: nn.Module, call: TrainingCall, rows: Rows, *, seconds: float
) -> Setup:
    """Return a setup whose batches hold the arguments of the model and the target.

    Rows are those that the loaders of `setup` serve, as many as can be had in so many seconds;
    where there is none, those that were kept.
    """
    if call.loss is None:
        raise InapplicableError("the loss is not a torch loss function, or was not seen")
    function, arguments = call.loss
    scores = flexible_scores(call.output, arguments.get("input"))
    if scores is None:
        raise InapplicableError("the loss function does not receive the model output")

    def loss(model: nn.Module, batch: RowBatch) -> Tensor:
        made = scores(model(*batch["args"], **batch["kwargs"]))
        given = {**arguments, "input": made, "target": batch["target"].to(made.device)}
        value: Tensor = getattr(nn.functional, function)(**given)
        return value

    recipe = _recipe(call) if setup.loaders else None
    train = _split(setup, "train", recipe, rows.trained, 0.6 * seconds)
    valid = _split(setup, "valid", recipe, lambda: _unknown(rows.evaluated(), train), 0.4 * seconds)
    if not train or not valid:
        missing = "validation" if train else "training"
        raise InapplicableError(f"no {missing} rows with targets are known")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    return Setup.of(model, optimizer, loss, train, valid=valid)


def _split(
    setup: Setup,
    split: str,
    recipe: "_Recipe | None",
    kept: Callable[[], list[RowBatch]],
    seconds: float,
) -> list[RowBatch]:
    if recipe is None or split not in setup.loaders:
        return kept()
    return list(_served_rows(setup, split, recipe, seconds))


def _unknown(tables: list[list[RowBatch]], train: list[RowBatch]) -> list[RowBatch]:
    """Return the first rows of which hardly one is a training row."""
    known = {row for batch in train for row in _digests(batch)}
    for table in tables:
        rows = [row for batch in table for row in _digests(batch)]
        if sum(row in known for row in rows) <= _KNOWN * len(rows):
            return table
    return []


def _digests(batch: RowBatch) -> Iterator[bytes]:
    count = len(batch["target"])
    given = [leaf.cpu().numpy() for leaf in tensors((batch["args"], batch["kwargs"]))]
    own = [np.ascontiguousarray(leaf) for leaf in given if leaf.ndim and len(leaf) == count]
    for place in range(count):
        yield b"".join(leaf[place].tobytes() for leaf in own)


@dataclass(frozen=True, slots=True)
class _Recipe:
    """Which tensors of a batch become arguments and the target."""

    call: TrainingCall
    target: str
    arguments: Mapping[str, str]  # path in the arguments -> path in the batch

    def rows(self, batch: Any) -> RowBatch:
        """Return the arguments and the target that a batch gives."""
        held = leaves(batch)
        given = leaves(self.call.arguments)
        if not {self.target, *self.arguments.values()} <= held.keys():
            raise InapplicableError("batches differ in structure")
        made = {path: _like(held[source], given[path]) for path, source in self.arguments.items()}
        args, kwargs = replaced(self.call.arguments, made)
        loss = self.call.loss
        assert loss is not None
        return {
            "args": args,
            "kwargs": kwargs,
            "target": _like(held[self.target], loss[1]["target"]),
        }


def _recipe(call: TrainingCall) -> _Recipe:
    target = None if call.loss is None else call.loss[1].get("target")
    held = leaves(call.batch) if call.batch is not None else {}
    aims = [path for path, leaf in held.items() if _is_source(leaf, target)]
    if not aims or not isinstance(target, Tensor):
        raise InapplicableError("the target of the loss is not an unchanged part of a loaded batch")
    found = {}
    for path, leaf in leaves(call.arguments).items():
        if leaf.dim():
            sources = [each for each, own in held.items() if _is_source(own, leaf)]
            if not sources:
                raise InapplicableError(
                    "the model receives inputs that are not part of a loaded batch"
                )
            found[path] = sources[0]
    if not found:
        raise InapplicableError("the model receives no tensor of a batch")
    return _Recipe(call, aims[0], found)


def _is_source(own: Tensor, given: Any) -> bool:
    return isinstance(given, Tensor) and own.dim() > 0 and same_numbers(own, given)


def _like(leaf: Tensor, given: Tensor) -> Tensor:
    """Return a tensor of a batch in the form in which the training gives it."""
    made = leaf.to(device=given.device, dtype=given.dtype)
    if made.dim() == given.dim():
        return made
    rows = len(leaf) if made[0].numel() == given[0].numel() else -1
    return made.reshape(rows, *given.shape[1:])


def _served_rows(setup: Setup, split: str, recipe: _Recipe, seconds: float) -> Iterator[RowBatch]:
    """Yield batches of rows that a loader serves, chosen at random."""
    loader: DataLoader[Any] = setup.loaders[split]
    known = served(setup, split)
    if known is None:
        raise InapplicableError("a loader has no samples with an index")
    count = min(_ROWS[split], len(known.positions))
    chosen = np.random.default_rng(0).choice(len(known.positions), count, replace=False)
    size = min(loader.batch_size or _BATCH, _BATCH)
    until = time.thread_time() + seconds
    with left_alone(known.dataset):
        for start in range(0, count, size):
            places = [known.positions[int(n)] for n in chosen[start : start + size]]
            if len(places) > 1 or not start:
                batch = loader.collate_fn([known.dataset[place] for place in places])
                yield recipe.rows(batch)
            if time.thread_time() > until:
                if start + size < min(FEWEST, count):
                    why = f"rows are read too slowly: {start + size} in {seconds:.2g} s"
                    raise InapplicableError(why)
                break
