"""Data: inputs and targets standardised, batches shuffled, losses averaged or weighted."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
)

from holter.lab.batches import leaves, replaced
from holter.lab.calls import arguments_replaced, targets_replaced
from holter.lab.changes import Altered, TappedChange
from holter.lab.changes._hooks import Arguments, around_models, is_training
from holter.lab.changes.passes import is_data
from holter.record.trials import TrialKind, TrialName
from holter.watching.taps import Tap

_FEWEST = 4  # samples that tell the mean and the spread of a feature
_STANDARD = 0.05  # deviation of mean and spread from 0 and 1 that is none
_OF_NUMBERS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_Scale = tuple[Tensor, Tensor]  # mean and standard deviation


def _scale_of(values: Tensor) -> _Scale:
    """Return mean and spread: of each feature of a table, of each channel of images, of all."""
    over = {2: (0,), 4: (0, 2, 3)}.get(values.dim(), tuple(range(values.dim())))
    if len(values) < _FEWEST:
        over = tuple(range(values.dim()))
    values = values.detach().double()
    spread = values.std(over, correction=0, keepdim=True)
    return values.mean(over, keepdim=True), torch.where(spread > 0, spread, 1.0)


def _is_standard(scale: _Scale) -> bool:
    mean, spread = scale
    off = mean.abs().mean() < _STANDARD and (spread.log().abs().mean() < _STANDARD)
    return bool(off)


def _scaled(values: Tensor, scale: _Scale) -> Tensor:
    mean, spread = scale
    return ((values.double() - mean) / spread).to(values.dtype)


@contextmanager
def _standardised_inputs(altered: Altered) -> Iterator[None]:
    """Standardise what models are given by the mean and spread of the first batch."""
    scales: WeakKeyDictionary[nn.Module, dict[str, _Scale]] = WeakKeyDictionary()

    def given(model: nn.Module, arguments: Arguments) -> Arguments:
        known = scales.setdefault(model, {})
        found = {k: t for k, t in leaves(arguments).items() if t.dim() and not t.requires_grad}
        new: dict[str, Tensor] = {}
        for path, tensor in found.items():
            if path not in known and is_data(tensor, len(tensor)):
                known[path] = _scale_of(tensor)
            if path in known and not _is_standard(known[path]):
                new[path] = _scaled(tensor, known[path])
        if not new:
            return arguments
        altered()
        args, kwargs = replaced(arguments, new)
        return args, kwargs

    with around_models(given=given):
        yield


STANDARDISED_INPUTS = TappedChange(
    TrialName(TrialKind.STANDARDISED_INPUTS),
    "Standardise the model's inputs by the mean and spread of the first batch.",
    _standardised_inputs,
)


@contextmanager
def _standardised_targets(altered: Altered) -> Iterator[None]:
    scales: list[_Scale] = []

    def standardised(function: str, target: Tensor) -> Tensor:
        if function not in _OF_NUMBERS or not target.is_floating_point() or not target.dim():
            return target
        if not scales:
            flat = target.detach().double()
            spread = flat.std(correction=0)
            scales.append((flat.mean(), torch.where(spread > 0, spread, 1.0)))
        if _is_standard(scales[0]):
            return target
        altered()
        return _scaled(target, scales[0])

    with targets_replaced(standardised):
        yield


STANDARDISED_TARGETS = TappedChange(
    TrialName(TrialKind.STANDARDISED_TARGETS),
    "Standardise the targets of the loss by the mean and spread of the first batch.",
    _standardised_targets,
)

Named = Mapping[str, Any]


def _of_losses(
    change: Callable[[str, Named], Named], altered: Altered
) -> AbstractContextManager[None]:
    def replaced_by(function: str, arguments: Named) -> Named:
        new = change(function, arguments)
        if new:
            altered()
        return new

    return arguments_replaced(replaced_by)


def _averaged(_: str, arguments: Named) -> Named:
    return {"reduction": "mean"} if arguments.get("reduction") == "sum" else {}


MEAN_LOSS = TappedChange(
    TrialName(TrialKind.MEAN_LOSS),
    "Average the loss over the batch where it is summed.",
    partial(_of_losses, _averaged),
)


def _unweighted(_: str, arguments: Named) -> Named:
    weights = ("weight", "pos_weight")
    new: dict[str, Any] = {name: None for name in weights if arguments.get(name) is not None}
    return {**new, "label_smoothing": 0.0} if arguments.get("label_smoothing") else new


UNWEIGHTED_LOSS = TappedChange(
    TrialName(TrialKind.UNWEIGHTED_LOSS),
    "Leave out class weights and label smoothing of the loss.",
    partial(_of_losses, _unweighted),
)


@contextmanager
def _weighted(altered: Altered) -> Iterator[None]:
    counts: dict[int, Tensor] = {}  # by the number of classes

    def weights(function: str, arguments: Named) -> Named:
        given, target = arguments.get("input"), arguments.get("target")
        if not isinstance(given, Tensor) or not isinstance(target, Tensor):
            return {}
        if function == "binary_cross_entropy_with_logits" and arguments.get("pos_weight") is None:
            seen = counts.setdefault(0, torch.ones(2, dtype=torch.float64))
            seen += torch.tensor([float((target < 0.5).sum()), float((target >= 0.5).sum())])
            return {"pos_weight": (seen[0] / seen[1]).to(given)}
        classes = given.shape[1] if given.dim() > 1 else len(given)
        if function != "cross_entropy" or target.is_floating_point():
            return {}
        if arguments.get("weight") is not None:
            return {}
        seen = counts.setdefault(classes, torch.ones(classes, dtype=torch.float64))
        labels = target[(target >= 0) & (target < classes)]
        seen += torch.bincount(labels.flatten().cpu(), minlength=classes)
        return {"weight": (seen.sum() / (classes * seen)).to(given)}

    with _of_losses(weights, altered):
        yield


CLASS_WEIGHTS = TappedChange(
    TrialName(TrialKind.CLASS_WEIGHTS),
    "Weight classes by the inverse of their frequency.",
    _weighted,
)


@contextmanager
def _shuffled(altered: Altered) -> Iterator[None]:
    """Shuffle loaders that deliver samples in order while gradients are on, also over epochs."""
    epochs: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
    replaced_in: list[tuple[DataLoader[Any], Any, Any]] = []

    def shuffle(loader: DataLoader[Any]) -> None:
        if type(loader.sampler) is SequentialSampler and type(loader.batch_sampler) is BatchSampler:
            altered()
            replaced_in.append((loader, loader.sampler, loader.batch_sampler))
            sampler: Any = RandomSampler(loader.dataset)  # type: ignore[arg-type]
            batches = BatchSampler(sampler, loader.batch_sampler.batch_size, loader.drop_last)
            vars(loader).update(sampler=sampler, batch_sampler=batches)

    def iterate(original: Callable[..., Any]) -> Callable[..., Any]:
        def begun(self: DataLoader[Any]) -> Any:
            if is_training():
                shuffle(self)
            sampler = self.sampler
            if isinstance(sampler, DistributedSampler):
                epochs[sampler] = epochs.get(sampler, -1) + 1
                if epochs[sampler] and sampler.epoch == 0:
                    altered()
                    sampler.set_epoch(epochs[sampler])
            return original(self)

        return begun

    tap = Tap(DataLoader, "__iter__", iterate)
    try:
        yield
    finally:
        tap.remove()
        for loader, sampler, batches in replaced_in:
            vars(loader).update(sampler=sampler, batch_sampler=batches)


SHUFFLED_LOADER = TappedChange(
    TrialName(TrialKind.SHUFFLED_LOADER),
    "Shuffle the samples of every loader, in another order each epoch.",
    _shuffled,
)
