"""Floors: the least loss that any predictions could have, from how a loss function is called."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from holter.lab.calls import LossEvaluation
from holter.lab.experiments._overfitting.loss_minima import taken_apart
from holter.lab.experiments._overfitting.passes import Pass
from holter.lab.experiments._overfitting.sameness import sameness

_WHOLE = 64  # a loss may be divided by so many batches that make one step


@dataclass(frozen=True, slots=True)
class Floor:
    """The least loss of any predictions, and of one answer for all samples.

    It is not `exact` where a model may be unable to reach it: inputs are redrawn in each step,
    or samples are the classes of one another.
    """

    least: float
    constant: float
    because: str  # what it was computed from
    exact: bool = True


def floor_of(passes: Sequence[Pass], count: int) -> Floor | str:
    """The floor of passes over the same `count` samples; or why it cannot be computed.

    Several passes show what is drawn at random in the step: where inputs were the same in all of
    them and targets were not, no prediction can follow.
    """
    if any(not each.calls for each in passes):
        return "the step calls none of torch's loss functions"
    parts = [taken_apart(call) for each in passes for call in each.calls]
    if unknown := [part for part in parts if isinstance(part, str)]:
        return unknown[0]
    scales = [_scale(each) for each in passes]
    if None in scales:
        return f"the loss is not what {passes[0].calls[0].function} returned"
    scale = float(scales[0] or 1.0)
    targets = [[call.arguments["target"] for call in each.calls] for each in passes]
    if all(_same(passes[0].inputs, each.inputs) for each in passes):
        if all(_same(targets[0], target) for target in targets):
            passes = passes[:1]
        found = _floor(
            [_pooled(calls) for calls in _aligned(passes)], passes[0], count, len(passes)
        )
    else:
        floors = [_floor(each.calls, each, count, 1) for each in passes]
        known = [floor for floor in floors if isinstance(floor, Floor)]
        if len(known) < len(floors):
            return next(floor for floor in floors if isinstance(floor, str))
        found = Floor(
            sum(each.least for each in known) / len(known),
            sum(each.constant for each in known) / len(known),
            known[0].because,
            exact=False,
        )
    if isinstance(found, str):
        return found
    return replace(found, least=found.least * scale, constant=found.constant * scale)


def _floor(calls: Sequence[LossEvaluation], of: Pass, count: int, passes: int) -> Floor | str:
    same = sameness(of.inputs, count)
    least = constant = 0.0
    because = []
    exact = True
    for call in calls:
        part = taken_apart(call)
        if isinstance(part, str):
            return part
        exact &= part.exact
        groupings = same.of_rows(part.rows // passes)
        if groupings is None:
            return "samples with the same input cannot be distinguished in the loss"
        share = passes if call.arguments["reduction"] == "sum" else 1
        floors = [
            part.least(grouping.repeat(passes)) / part.divisor / share for grouping in groupings
        ]
        least += max(floors)
        constant += part.least(part.columns) / part.divisor / share
        because.append(part.because)
        if max(floors) > floors[0] * (1 + 1e-6) + 1e-9:
            because.append("sequences with the same beginning")
    if same.repeated:
        because.append(f"{same.repeated} samples with the input of another")
    return Floor(least, constant, ", ".join(dict.fromkeys(because)), exact)


def _same(some: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
    return len(some) == len(others) and all(map(torch.equal, some, others))


def _aligned(passes: Sequence[Pass]) -> list[Sequence[LossEvaluation]]:
    """The first call of all passes, the second, ..."""
    return list(zip(*(each.calls for each in passes), strict=False))


def _pooled(calls: Sequence[LossEvaluation]) -> LossEvaluation:
    """The same call of several passes as one of all their samples."""
    first = calls[0]
    shape = first.arguments["target"].shape
    joined = {
        name: _joined([call.arguments[name] for call in calls])
        for name, each in first.arguments.items()
        if isinstance(each, Tensor) and (name == "input" or each.shape == shape)
    }
    return replace(first, arguments={**first.arguments, **joined}) if len(calls) > 1 else first


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat(list(tensors)) if tensors[0].dim() else torch.stack(list(tensors))


def _scale(forward_pass: Pass) -> float | None:
    """What the loss is to the sum (or the mean) of what the functions returned: 1 or 1/k."""
    low = any(call.value.dtype in (torch.bfloat16, torch.float16) for call in forward_pass.calls)
    near = 2e-2 if low else 1e-4
    totals = [float(call.value.float().mean()) for call in forward_pass.calls]
    total = sum(totals)
    if not torch.isfinite(torch.tensor([total, forward_pass.loss])).all():
        return None
    if abs(forward_pass.loss - total) <= near * abs(total) + 1e-7:
        return 1.0
    ratio = forward_pass.loss / total if total else 0.0
    ratios = [1 / k for k in range(2, (8 if low else _WHOLE) + 1)]
    if len(totals) == 1 and forward_pass.calls[0].value.dim():  # summed, or summed for each sample
        value = forward_pass.calls[0].value
        ratios += [float(value.numel()), value.numel() / len(value)]
    close = [each for each in ratios if abs(ratio / each - 1) <= near]
    return close[0] if close else None
