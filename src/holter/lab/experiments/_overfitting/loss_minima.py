"""The least value of each of torch's loss functions, for the targets that it is given."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from holter.lab.calls import LossEvaluation

_REGRESSIONS: Mapping[str, Callable[..., Tensor]] = {
    "mse_loss": functional.mse_loss,
    "l1_loss": functional.l1_loss,
    "smooth_l1_loss": functional.smooth_l1_loss,
    "huber_loss": functional.huber_loss,
}


@dataclass(frozen=True, slots=True)
class Part:
    """A call taken apart: the `least` sum of any grouping of its rows, and what divides it."""

    rows: int
    least: Callable[[Tensor], float]  # of a group for each row: one prediction for a whole group
    columns: Tensor  # the grouping of a constant answer
    divisor: float
    because: str
    exact: bool = True  # not where samples are the classes of one another: a model may be bound


def taken_apart(call: LossEvaluation) -> Part | str:
    """The rows of a call with their least loss; or why it is not known."""
    name, arguments = call.function, call.arguments
    if arguments.get("size_average") is not None or arguments.get("reduce") is not None:
        return f"{name} is called with size_average or reduce"
    if name in ("cross_entropy", "nll_loss", "linear_cross_entropy"):
        return _of_classes(name, arguments)
    if name in ("binary_cross_entropy", "binary_cross_entropy_with_logits"):
        return _of_probabilities(name, arguments)
    if name in _REGRESSIONS:
        return _of_numbers(name, arguments)
    if name == "kl_div":
        return _of_distributions(arguments)
    return f"the least value of {name} is not known"


def _of_classes(name: str, arguments: Mapping[str, Any]) -> Part | str:
    logits, target, weight = arguments["input"], arguments["target"], arguments.get("weight")
    smoothing = float(arguments.get("label_smoothing") or 0.0)
    classes = (
        len(arguments["linear_weight"])
        if name == "linear_cross_entropy"
        else logits.shape[1 if logits.dim() > 1 else 0]
    )
    weights = (
        torch.ones(classes, dtype=torch.float64)
        if weight is None
        else weight.detach().double().cpu()
    )
    words = [name]
    if smoothing:
        words.append(f"label smoothing {smoothing:g} over {classes} classes")
    if weight is not None and (smoothing or target.is_floating_point()):
        words.append("class weights")
    if target.is_floating_point():
        soft = _rows(target, classes)
        soft = soft * (1 - smoothing) + smoothing / classes
        return Part(
            rows=len(soft),
            least=lambda groups: _entropies(_summed(soft * weights, groups)),
            columns=torch.zeros(len(soft), dtype=torch.long),
            divisor=_divisor(arguments, len(soft)),
            because=" with ".join((words[0], "soft targets")) + _and(words[1:]),
        )
    labels = target.detach().reshape(-1).long().cpu()
    ignored = arguments.get("ignore_index")
    told = labels != (-100 if ignored is None else ignored)
    if not told.any() or labels[told].min() < 0 or labels[told].max() >= classes:
        return "no target counts" if not told.any() else "targets are not classes"
    own = torch.where(told, weights[labels.clamp(0, classes - 1)], 0.0)

    def least(groups: Tensor) -> float:
        return _label_entropy(labels[told], own[told], weights, smoothing / classes, groups[told])

    return Part(
        rows=len(labels),
        least=least,
        columns=torch.zeros(len(labels), dtype=torch.long),
        divisor=_divisor(arguments, len(labels), mean=float(own.sum())),
        because=words[0] + (f" with {words[1]}" if words[1:] else "") + _and(words[2:]),
        exact=len(labels) != classes or len(torch.unique(labels)) != classes,
    )


def _of_probabilities(name: str, arguments: Mapping[str, Any]) -> Part | str:
    target = arguments["target"].detach().double().cpu()
    if target.min() < 0 or target.max() > 1:
        return "targets are not probabilities"
    weight, positive = arguments.get("weight"), arguments.get("pos_weight")
    count = 1.0 if weight is None else weight.detach().double().cpu()
    gain = 1.0 if positive is None else positive.detach().double().cpu()
    both = torch.stack((target * gain * count, (1 - target) * count), -1).reshape(-1, 2)
    soft = bool(((target > 0) & (target < 1)).any())
    return Part(
        rows=len(both),
        least=lambda groups: _entropies(_summed(both, groups)),
        columns=_columns(target),
        divisor=_divisor(arguments, len(both)),
        because=f"{name} with soft targets" if soft else name,
    )


def _of_distributions(arguments: Mapping[str, Any]) -> Part | str:
    target = arguments["target"].detach().double().cpu()
    target = target.exp() if arguments["log_target"] else target
    sums = [dim for dim in range(target.dim()) if (target.sum(dim) - 1).abs().max() < 1e-3]
    if not sums or target.min() < 0:
        return "targets of kl_div are not distributions"
    rows = target.movedim(sums[-1], -1).reshape(-1, target.shape[sums[-1]])
    own = _entropies(rows)
    batch = len(target) if arguments["reduction"] == "batchmean" else target.numel()
    return Part(
        rows=len(rows),
        least=lambda groups: _entropies(_summed(rows, groups)) - own,
        columns=torch.zeros(len(rows), dtype=torch.long),
        divisor=1.0 if arguments["reduction"] == "sum" else float(batch),
        because="kl_div",
    )


def _of_numbers(name: str, arguments: Mapping[str, Any]) -> Part | str:
    target = arguments["target"].detach().double().cpu()
    weight = arguments.get("weight")
    if weight is not None:
        return f"{name} is weighted"
    more = {key: arguments[key] for key in ("beta", "delta") if key in arguments}
    values = target.reshape(-1)

    def least(groups: Tensor) -> float:
        return _least_distance(name, values, more, groups)

    return Part(
        rows=len(values),
        least=least,
        columns=_columns(target),
        divisor=_divisor(arguments, len(values)),
        because=name,
    )


def _divisor(arguments: Mapping[str, Any], count: int, mean: float | None = None) -> float:
    """What a sum over all rows is divided by; where nothing is reduced, a mean is meant."""
    if arguments["reduction"] == "sum":
        return 1.0
    if arguments["reduction"] == "none":
        return float(count)
    return float(count) if mean is None else mean


def _rows(target: Tensor, classes: int) -> Tensor:
    values = target.detach().double().cpu()
    return values.movedim(1, -1).reshape(-1, classes) if values.dim() > 1 else values[None]


def _columns(target: Tensor) -> Tensor:
    """The place of each value within its sample."""
    inner = target[0].numel() if target.dim() else 1
    return torch.arange(target.numel()) % max(inner, 1)


def _summed(rows: Tensor, groups: Tensor) -> Tensor:
    """The sum of the rows of each group."""
    names, place = torch.unique(groups, return_inverse=True)
    sums = torch.zeros(len(names), *rows.shape[1:], dtype=rows.dtype)
    return sums.index_add_(0, place, rows)


def _entropies(mass: Tensor) -> float:
    """The least sum of -mass log p over distributions p, one for each row."""
    total = mass.sum(1)
    return float(torch.xlogy(total, total).sum() - torch.xlogy(mass, mass).sum())


def _label_entropy(
    labels: Tensor, own: Tensor, weights: Tensor, smooth: float, groups: Tensor
) -> float:
    """The same for labels of a group that are smoothed; no table of all classes is made."""
    classes = len(weights)
    names, place = torch.unique(groups, return_inverse=True)
    members = torch.bincount(place, minlength=len(names)).double()
    pairs, where = torch.unique(place * classes + labels, return_inverse=True)
    hard = torch.zeros(len(pairs), dtype=torch.float64)
    hard.index_add_(0, where, own * (1 - smooth * classes))
    base = members[pairs // classes] * smooth * weights[pairs % classes]
    total = members * smooth * weights.sum()
    total.index_add_(0, pairs // classes, hard)
    spread = members * smooth
    inner = (
        torch.xlogy(spread, spread) * weights.sum() + spread * torch.xlogy(weights, weights).sum()
    )
    mass = base + hard
    logs = inner.sum() + (torch.xlogy(mass, mass) - torch.xlogy(base, base)).sum()
    return float(torch.xlogy(total, total).sum() - logs)


def _least_distance(
    name: str, values: Tensor, arguments: Mapping[str, Any], groups: Tensor
) -> float:
    """The least sum of distances of the values of each group to one number."""
    names, place, counts = torch.unique(groups, return_inverse=True, return_counts=True)
    if len(names) == len(values):
        return 0.0
    sums = torch.zeros(len(names), dtype=values.dtype).index_add_(0, place, values)
    if name == "mse_loss":
        return float((values - (sums / counts)[place]).square().sum())
    low = torch.full_like(sums, torch.inf).scatter_reduce(0, place, values, "amin")
    high = torch.full_like(sums, -torch.inf).scatter_reduce(0, place, values, "amax")
    distance = _REGRESSIONS[name]

    def cost(guess: Tensor) -> Tensor:
        each = distance(guess[place], values, reduction="none", **arguments)
        return torch.zeros_like(guess).index_add_(0, place, each)

    for _ in range(60):  # convex in each guess: thirds are cut off
        one, other = low + (high - low) / 3, high - (high - low) / 3
        better = cost(one) <= cost(other)
        low, high = torch.where(better, low, one), torch.where(better, other, high)
    return float(cost((low + high) / 2).sum())


def _and(words: Sequence[str]) -> str:
    return "".join(f" and {word}" for word in words)
