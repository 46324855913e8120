"""Rows of a split: what the model is given, what it answers in eval mode, and the targets."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from holter.lab.batches import cloned, leaves
from holter.lab.calls import LossEvaluation, losses_seen
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Batch, Setup
from holter.watching.collectors.graphs.terms import handwritten
from holter.watching.collectors.loss_calls import Family, Given, given

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

IGNORED = -1  # class of a position that has no target
FEWEST = 50  # rows of either split
_BYTES = 2**26  # of the inputs of a split
_ABSOLUTE = ("l1_loss", "smooth_l1_loss", "huber_loss")
_LOGARITHMIC = ("poisson_nll_loss",)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a split, in the order in which they were read.

    Targets and answers are classes (of each row, or of each position), or numbers by column.
    """

    inputs: Mapping[str, Array]  # by their path in the call of the model
    targets: Array
    answers: Array  # of the model
    scores: Floats | None  # of the second of two classes
    is_class: bool
    is_absolute: bool  # whether the loss grows with the distance, not with its square
    loss: float  # mean over batches

    def __len__(self) -> int:
        return len(self.targets)


class _Part(NamedTuple):
    """One batch of rows."""

    inputs: dict[str, Array]
    targets: Array
    answers: Array
    scores: Floats | None
    call: Given
    loss: float


def read_rows(setup: Setup, batches: Iterable[Batch], *, rows: int, seconds: float) -> Rows:
    """Call the model on batches until there are enough rows or the time is over.

    The model has to be in eval mode.
    """
    until = time.thread_time() + seconds
    parts: list[_Part] = []
    count = size = 0
    for batch in batches:
        part = _part(setup, batch)
        parts.append(part)
        count += len(part.targets)
        size += sum(array.nbytes for array in part.inputs.values())
        if count >= rows or size > _BYTES:
            break
        if time.thread_time() > until:
            if count < FEWEST:
                raise InapplicableError(f"the model is too slow: {count} rows in {seconds:.2g} s")
            break
    if not parts:
        raise InapplicableError("there are no rows to read")
    return _joined(parts)


def _part(setup: Setup, batch: Batch) -> _Part:
    held: dict[str, Array] = {}

    def keep(_: Any, args: Any, kwargs: Any) -> None:
        if not held:
            held.update({path: leaf.cpu().numpy() for path, leaf in _given(args, kwargs).items()})

    hook = setup.entry.register_forward_pre_hook(keep, with_kwargs=True)
    try:
        loss, call = _called(setup, batch)
    finally:
        hook.remove()
    if call is None or call.function in _LOGARITHMIC:
        raise InapplicableError("the loss is not one of classes, labels or numbers")
    inputs, shape = _by_row(held, len(call.target))
    targets, answers, scores = _judged(call, shape)
    return _Part(inputs, targets, answers, scores, call, loss)


def _given(args: Any, kwargs: Any) -> dict[str, torch.Tensor]:
    found = leaves((args, kwargs))
    return {path: leaf.detach() for path, leaf in found.items() if leaf.dim()}


def _called(setup: Setup, batch: Batch) -> tuple[float, Given | None]:
    """Return the loss of a batch and what the first known loss function was given."""
    with torch.no_grad(), losses_seen() as calls:
        loss = setup.loss(cloned(batch))
    if not calls and loss.numel() == 1:  # a loss written by hand is recognised by its graph
        with torch.enable_grad():
            loss = setup.loss(cloned(batch))
        if loss.requires_grad:
            calls = [
                LossEvaluation(each.function, each.arguments, loss) for each in handwritten([loss])
            ]
    known = (given(each.function, each.arguments) for each in calls)
    call = next((call for call in known if call is not None), None)
    return (np.nan if call is None else _mean_loss(call)), call


def _mean_loss(call: Given) -> float:
    """Return the mean over elements, whatever the script sums."""
    names = ("size_average", "reduce", "reduction")
    arguments = {key: value for key, value in call.arguments.items() if key not in names}
    with torch.no_grad():
        return float(getattr(functional, call.function)(**arguments, reduction="mean"))


def _by_row(held: dict[str, Array], count: int) -> tuple[dict[str, Array], tuple[int, ...]]:
    """Return inputs with rows first, and the shape of rows and positions that targets have.

    `count` is the length of the targets: rows, or rows times positions that were made one axis.
    """
    own = {path: leaf for path, leaf in held.items() if len(leaf) == count}
    if own:
        return own, (count,)
    for leaf in held.values():
        if leaf.ndim > 1 and len(leaf) * leaf.shape[1] == count:
            rows = {path: each for path, each in held.items() if len(each) == len(leaf)}
            return rows, leaf.shape[:2]
    second = {
        path: np.moveaxis(leaf, 1, 0)
        for path, leaf in held.items()
        if leaf.ndim > 1 and leaf.shape[1] == count
    }
    if second:  # time first
        return second, (count,)
    raise InapplicableError("the model is given no tensor with one row for each target")


def _judged(call: Given, shape: tuple[int, ...]) -> tuple[Array, Array, Floats | None]:
    """Return targets, answers, and the scores of the second of two classes."""
    if call.family is Family.CLASSES:
        scores = _floats(call.prediction.movedim(call.axis, -1))
        targets = call.target.argmax(call.axis) if call.is_soft else call.target
        labels = targets.cpu().numpy().astype(np.int64)
        if call.ignored is not None:
            labels = np.where(labels == call.ignored, IGNORED, labels)
        labels, answers = labels.reshape(*shape, *labels.shape[1:]), scores.argmax(-1)
        is_pair = scores.ndim == 2 and scores.shape[-1] == 2 and len(shape) == 1
        apart = scores[:, 1] - scores[:, 0] if is_pair else None
        return labels, answers.reshape(labels.shape), apart
    if call.prediction.numel() != call.target.numel():
        raise InapplicableError("predictions and targets have different sizes")
    made, wanted = _floats(call.prediction), _floats(call.target)
    made, wanted = made.reshape(*shape, -1), wanted.reshape(*shape, -1)
    if call.family is Family.NUMBERS:
        return wanted, made, None
    limit = 0.5 if call.function == "binary_cross_entropy" else 0.0
    meant = 0.0 if call.function == "soft_margin_loss" else 0.5
    labels, answers = (wanted > meant).astype(np.int64), (made > limit).astype(np.int64)
    if labels.shape[-1] == 1:
        labels, answers = labels[..., 0], answers[..., 0]
    return labels, answers, made.reshape(-1) if labels.ndim == 1 else None


def _floats(tensor: torch.Tensor) -> Floats:
    made: Floats = tensor.detach().double().cpu().numpy()
    return made


def _joined(parts: list[_Part]) -> Rows:
    first = parts[0].call
    names = set.intersection(*(set(part.inputs) for part in parts))
    scores = [part.scores for part in parts if part.scores is not None]
    targets = _stacked([part.targets for part in parts], IGNORED)
    is_class = first.family is not Family.NUMBERS
    return Rows(
        {name: _stacked([part.inputs[name] for part in parts], 0) for name in sorted(names)},
        targets,
        _stacked([part.answers for part in parts], IGNORED),
        np.concatenate(scores) if len(scores) == len(parts) else None,
        is_class,
        first.function in _ABSOLUTE,
        float(np.mean([part.loss for part in parts])),
    )


def _stacked(arrays: list[Array], fill: int) -> Array:
    """Return arrays one after another, filled up to the longest where lengths differ."""
    ranks = {array.ndim for array in arrays}
    if len(ranks) > 1:
        raise InapplicableError("batches differ in their number of dimensions")
    longest = np.max([array.shape[1:] for array in arrays], axis=0).astype(int).tolist()
    filled = [
        np.pad(
            array,
            [(0, 0), *((0, n - m) for n, m in zip(longest, array.shape[1:], strict=True))],
            constant_values=fill,
        )
        if list(array.shape[1:]) != longest
        else array
        for array in arrays
    ]
    return np.concatenate(filled)
