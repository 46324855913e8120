"""What losses of distributions are given: probabilities, targets that can be aligned."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from holter.record.signals import (
    ALIGNMENT_BLANK_FRACTION,
    ALIGNMENT_FRAMES,
    ALIGNMENT_IMPOSSIBLE_FRACTION,
    ALIGNMENT_USED,
    DISTRIBUTION_LOG_NORMALISER,
    DISTRIBUTION_MAX,
    DISTRIBUTION_SUM,
    DISTRIBUTION_TARGET_MIN,
    DISTRIBUTION_TARGET_SUM,
    EXCLUSIVE_DISTANCE,
    EXCLUSIVE_LABELS,
    Signal,
)
from holter.watching.collectors import Reading
from holter.watching.collectors.loss_calls import LIMIT, Measurements, Owners, readable
from holter.watching.collectors.moments import (
    AfterUpdate,
    BackwardBegins,
    Depth,
    LossComputed,
    StepEnds,
)

_Values = dict[Signal, Tensor]
_WHOLE = 0.01  # distance from 1 that is rounding


class Distributions:
    """Reads the calls of some losses, and gives the mean over those of a step."""

    emits: ClassVar[tuple[Signal, ...]] = (
        DISTRIBUTION_LOG_NORMALISER,
        DISTRIBUTION_SUM,
        DISTRIBUTION_MAX,
        DISTRIBUTION_TARGET_SUM,
        DISTRIBUTION_TARGET_MIN,
        ALIGNMENT_IMPOSSIBLE_FRACTION,
        ALIGNMENT_BLANK_FRACTION,
        ALIGNMENT_FRAMES,
        ALIGNMENT_USED,
        EXCLUSIVE_DISTANCE,
        EXCLUSIVE_LABELS,
    )
    at: ClassVar[tuple[type, ...]] = (LossComputed, BackwardBegins, AfterUpdate, StepEnds)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._calls: Measurements[_Values] = Measurements()
        self._owners = Owners()

    def read(
        self, moment: LossComputed | BackwardBegins | AfterUpdate | StepEnds
    ) -> Iterable[Reading]:
        """All calls of each loss function together, at the end of the step."""
        if isinstance(moment, LossComputed):
            measured = _READ.get(moment.function, _nothing)(moment.arguments)
            if measured:
                device = next(iter(measured.values())).device
                self._calls.add(moment.function, device, measured)
        elif isinstance(moment, StepEnds):
            for function, calls in self._calls.take():
                for signal in calls[0]:
                    values = torch.stack([call[signal] for call in calls if signal in call])
                    yield Reading(signal, self._owners[function], values.mean().reshape(1))
        else:
            self._calls.settle()


def _nothing(_: Mapping[str, Any]) -> _Values:
    return {}


def _divergence(arguments: Mapping[str, Any]) -> _Values:
    given, target = _floats(arguments.get("input")), _floats(arguments.get("target"))
    if given is None or target is None or given.shape != target.shape:
        return {}
    shares = target
    if arguments.get("log_target"):
        shares = shares.exp()
    axes = range(shares.dim())
    sums = torch.stack([shares.sum(), *(shares.sum(axis).median() for axis in axes)])
    return {
        **_of_logarithms(given, axes),
        DISTRIBUTION_TARGET_SUM: _nearest(sums, 1),
        DISTRIBUTION_TARGET_MIN: shares.amin(),
    }


def _alignment(arguments: Mapping[str, Any]) -> _Values:
    given, targets = _floats(arguments.get("log_probs")), arguments.get("targets")
    if given is None or not (isinstance(targets, Tensor) and readable(targets)):
        return {}
    measured = _of_logarithms(given, (given.dim() - 1,))
    lengths = [arguments.get(name) for name in ("input_lengths", "target_lengths")]
    inputs, wanted = (torch.as_tensor(each, device=given.device).reshape(-1) for each in lengths)
    if inputs.shape == wanted.shape:
        measured[ALIGNMENT_IMPOSSIBLE_FRACTION] = (inputs < wanted).float().mean()
    if inputs.numel() > 1:
        frames = torch.full((), given.shape[0], dtype=torch.float32, device=given.device)
        measured |= {ALIGNMENT_FRAMES: frames, ALIGNMENT_USED: inputs.amax().float() / frames}
    if targets.dim() == 2:  # padded
        places = torch.arange(targets.shape[1], device=targets.device)
        kept = places < wanted.to(targets.device)[:, None]
        blanks = (targets == arguments.get("blank", 0)) & kept
        share = blanks.sum() / kept.sum().clamp(min=1)
        measured[ALIGNMENT_BLANK_FRACTION] = share.to(given.device)
    elif targets.dim() == 1:  # one after the other
        share = (targets == arguments.get("blank", 0)).float().mean()
        measured[ALIGNMENT_BLANK_FRACTION] = share.to(given.device)
    return measured


def _labels(arguments: Mapping[str, Any]) -> _Values:
    """Whether the probabilities of several labels add up to 1, and the labels do not."""
    given, target = _floats(arguments.get("input")), _floats(arguments.get("target"))
    if given is None or target is None or given.shape != target.shape or given.dim() < 2:
        return {}
    axes = [axis for axis in range(1, given.dim()) if given.shape[axis] > 1]
    if not axes:
        return {}
    distances = torch.stack([(given.sum(axis) - 1).abs().amax() for axis in axes])
    apart = torch.stack([((target.sum(axis) - 1).abs() > _WHOLE).float().mean() for axis in axes])
    nearest = distances.argmin().reshape(1)
    return {
        EXCLUSIVE_DISTANCE: distances.gather(0, nearest)[0],
        EXCLUSIVE_LABELS: apart.gather(0, nearest)[0],
    }


def _of_logarithms(values: Tensor, axes: Sequence[int]) -> _Values:
    """Of the axis that fits best; which one that is stays on the device."""
    flat = values.flatten()  # a distribution over pairs adds up over all of them
    logs = torch.stack([flat.logsumexp(0), *(values.logsumexp(axis).median() for axis in axes)])
    sums = torch.stack([flat.sum(), *(values.sum(axis).median() for axis in axes)])
    is_share = (values >= 0).all() & (values <= 1).all()
    return {
        DISTRIBUTION_LOG_NORMALISER: _nearest(logs, 0),
        DISTRIBUTION_SUM: torch.where(is_share, _nearest(sums, 1), torch.nan),
        DISTRIBUTION_MAX: values.amax(),
    }


def _nearest(values: Tensor, wanted: float) -> Tensor:
    return values.gather(0, (values - wanted).abs().argmin().reshape(1))[0]


def _floats(tensor: Any) -> Tensor | None:
    """The tensor without its graph, if it has values to read and not too many."""
    if not (isinstance(tensor, Tensor) and readable(tensor) and tensor.is_floating_point()):
        return None
    return tensor.detach().float() if 0 < tensor.numel() <= LIMIT and tensor.dim() else None


_READ = {"kl_div": _divergence, "ctc_loss": _alignment, "binary_cross_entropy": _labels}
