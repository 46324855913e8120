"""What targets say without their inputs: class frequencies, mean and spread."""

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from holter.record.signals import (
    TARGET_BATCH_ENTROPY,
    TARGET_CLASSES,
    TARGET_ENTROPY,
    TARGET_LARGEST_CLASS_FRACTION,
    TARGET_MEAN,
    TARGET_STD,
    TARGET_WEIGHT_AWAY,
    TARGET_WEIGHT_SLOPE,
    Signal,
)
from holter.watching.collectors.loss_calls import Family, Given, wide

_MOST_CLASSES = 1 << 18
_MOST_UNITS = 1 << 16  # that have a mean of their own each
_UNBALANCED = math.log(0.6 / 0.4)  # log odds of a label beyond which a weight has a direction

Scalars = dict[Signal, Tensor]


@dataclass(frozen=True, slots=True)
class Labels:
    """How often each class was the target, and how the loss function weighs the classes."""

    counts: Tensor
    weight: Tensor | None
    smoothing: float
    is_soft: bool

    @property
    def key(self) -> Any:
        """What can be joined has the same."""
        return self.counts.device, self.counts.numel()

    def joined(self, seen: "Labels | None") -> "Labels":
        """With all that was seen before."""
        return self if seen is None else replace(self, counts=seen.counts + self.counts)

    def of_all(self) -> Scalars:
        """The signals of all targets so far."""
        values = {
            TARGET_ENTROPY: self._entropy(),
            TARGET_CLASSES: (self.counts > 0).sum(),
            TARGET_LARGEST_CLASS_FRACTION: self.counts.amax() / self.counts.sum(),
        }
        if self.weight is not None:
            values[TARGET_WEIGHT_SLOPE] = _slope(self.counts, self.weight)
        return values

    def of_batch(self) -> Scalars:
        """The signals of the targets of one step."""
        return {TARGET_BATCH_ENTROPY: self._entropy()}

    def _entropy(self) -> Tensor:
        share = self.counts / self.counts.sum()
        if self.weight is None and not self.smoothing:
            return _least_loss(share)
        weight = torch.ones_like(share) if self.weight is None else self.weight
        smooth = share * (1 - self.smoothing) + self.smoothing / share.numel()
        # The mean over samples is weighted, too; that over distributions is not.
        return _least_loss(smooth * weight / (1 if self.is_soft else (share * weight).sum()))


@dataclass(frozen=True, slots=True)
class Moments:
    """The mean of each unit, and the sum of all squares about those means."""

    mean: Tensor
    squares: Tensor
    samples: Tensor
    is_binary: bool
    weight: Tensor | None = None  # of yes over no
    has_entropy: bool = True  # not where each element has a weight of its own

    @property
    def key(self) -> Any:
        """What can be joined has the same."""
        return self.mean.device

    def joined(self, seen: "Moments | None") -> "Moments":
        """With all that was seen before; a batch with a target that is not finite stays out."""
        if seen is None:
            nothing = torch.zeros_like
            seen = replace(self, mean=nothing(self.mean), squares=nothing(self.squares),
                           samples=nothing(self.samples))  # fmt: skip
        if seen.mean.shape != self.mean.shape:
            return self.as_one().joined(seen.as_one())
        samples = seen.samples + self.samples
        share = self.samples / samples.clamp(min=1)
        away = self.mean - seen.mean
        between = away.square().sum() * seen.samples * share
        fine = torch.isfinite(self.mean).all() & torch.isfinite(self.squares)
        return replace(
            self,
            mean=torch.where(fine, seen.mean + away * share, seen.mean),
            squares=torch.where(fine, seen.squares + self.squares + between, seen.squares),
            samples=torch.where(fine, samples, seen.samples),
        )

    def of_all(self) -> Scalars:
        """The signals of all targets so far."""
        mean = self._mean_if_any()
        if not self.is_binary:
            variance = self.squares / (self.samples * mean.numel())
            return {TARGET_MEAN: mean.mean(), TARGET_STD: variance.sqrt()}
        values = {TARGET_LARGEST_CLASS_FRACTION: torch.maximum(mean, 1 - mean).mean()}
        if self.has_entropy:
            values[TARGET_ENTROPY] = self._entropy()
        if self.weight is not None and self.weight.numel() in (1, mean.numel()):
            share = mean.mean().reshape(1) if self.weight.numel() == 1 else mean
            values |= _of_pos_weight(share, self.weight)
        return values

    def of_batch(self) -> Scalars:
        """The signals of the targets of one step: with many units, a batch says little of each."""
        alone = self.is_binary and self.has_entropy and self.mean.numel() == 1
        return {TARGET_BATCH_ENTROPY: self._entropy()} if alone else {}

    def _entropy(self) -> Tensor:
        yes = self._mean_if_any().clamp(0, 1)
        weighted = yes if self.weight is None else yes * self.weight
        return _least_loss(torch.stack([weighted, 1 - yes])).mean()

    def _mean_if_any(self) -> Tensor:
        return torch.where(self.samples > 0, self.mean, math.nan)

    def as_one(self) -> "Moments":
        """All units as if they were one."""
        units, mean = self.mean.numel(), self.mean.mean().reshape(1)
        squares = self.squares + (self.mean - mean).square().sum() * self.samples
        exact = self.has_entropy and (self.weight is None or self.weight.numel() == 1)
        return replace(
            self, mean=mean, squares=squares, samples=self.samples * units, has_entropy=exact
        )


def baseline(call: Given) -> Labels | Moments | None:
    """What the targets of one call say; None where there are too many classes to count."""
    return _labels(call) if call.family is Family.CLASSES else _moments(call)


def _labels(call: Given) -> Labels | None:
    classes = call.prediction.shape[call.axis]
    if classes > _MOST_CLASSES:
        return None
    thin = call.thinned()
    target, dtype = thin.target, wide(thin.target)
    if call.is_soft:
        rest = [axis for axis in range(target.dim()) if axis != thin.axis]
        counts = target.to(dtype).sum(rest) if rest else target.to(dtype)
        counts = counts.nan_to_num(0, 0, 0)
    else:
        # One place more than classes, for what is ignored; a mask would wait for the device.
        ignored = -1 if call.ignored is None else call.ignored
        target = target.long()
        places = torch.where(target == ignored, classes, target).reshape(-1).clamp(0, classes)
        counts = torch.zeros(classes + 1, dtype=dtype, device=target.device)
        counts = counts.scatter_add(0, places, torch.ones_like(places, dtype=dtype))[:-1]
    margin = call.function == "multi_margin_loss"  # which is no likelihood
    weight = None if margin else call.arguments.get("weight")
    if weight is not None:
        weight = weight.detach().to(dtype)
    return Labels(counts, weight, float(call.arguments.get("label_smoothing") or 0), call.is_soft)


def _moments(call: Given) -> Moments:
    thin = call.thinned()
    target, binary = thin.target, call.family is Family.BINARY
    values = target.to(wide(target))
    if call.function == "soft_margin_loss":
        values = (values + 1) / 2
    rows = values.reshape(target.shape[0] if target.dim() else 1, -1)
    weight, exact = None, True
    if binary:
        weight, exact = _of_yes(call, target)
    if rows.shape[1] > _MOST_UNITS:
        rows = rows.reshape(-1, 1)
        exact &= weight is None or weight.numel() == 1
    variance, mean = torch.var_mean(rows, 0, correction=0)
    samples = mean.new_full((), rows.shape[0])
    return Moments(mean, variance.sum() * samples, samples, binary, weight, exact)


def _of_yes(call: Given, target: Tensor) -> tuple[Tensor | None, bool]:
    """What a yes weighs in each unit, if that is known."""
    if call.arguments.get("weight") is not None:
        return None, False
    weight = call.arguments.get("pos_weight")
    if weight is None:
        return None, True
    weight = weight.detach().to(wide(weight))
    if weight.numel() == 1:
        return weight.reshape(1), True
    if target.shape[1:] != call.target.shape[1:] or weight.dim() >= target.dim():
        return None, False
    return weight.expand(target.shape[1:]).reshape(-1), True


def _least_loss(shares: Tensor) -> Tensor:
    """The least -sum(share * log q) of all distributions q: the entropy, if shares add to 1."""
    total = shares.sum(0)
    return torch.xlogy(total, total) - torch.xlogy(shares, shares).sum(0)


def _of_pos_weight(share: Tensor, weight: Tensor) -> Scalars:
    """The slope of log weight over log odds through 0, and how many labels it has that sign for."""
    seen = (share > 0) & (share < 1) & (weight > 0)
    odds = torch.where(seen, share.logit(), 0)
    sizes = torch.where(seen, weight, 1).log()
    tilted = odds.abs() > _UNBALANCED
    away = (tilted & (odds * sizes > 0)).sum() / tilted.sum()
    return {
        TARGET_WEIGHT_SLOPE: (odds * sizes).sum() / odds.square().sum(),
        TARGET_WEIGHT_AWAY: away,
    }


def _slope(counts: Tensor, weight: Tensor) -> Tensor:
    """The slope of log weight over log count, over the classes that occur; NaN where none has."""
    seen = (counts > 0) & (weight > 0)
    sizes, weights = (torch.where(seen, each, 1).log() for each in (counts, weight))
    number = seen.sum()
    away = torch.where(seen, sizes - sizes.sum() / number, 0)
    return (away * weights).sum() / away.square().sum()
