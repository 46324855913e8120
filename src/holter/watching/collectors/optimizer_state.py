"""What optimizers keep of the past: their own count of steps, and the second moments of Adam."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer

from holter.record.signals import ADAM_SURPRISE, ADAM_TINY_FRACTION, OPTIMIZER_AGE, Signal
from holter.watching.collectors import Reading
from holter.watching.collectors.moments import AfterUpdate, BeforeUpdate, Depth
from holter.watching.collectors.outputs import gathered, sent
from holter.watching.collectors.roster import Subject
from holter.watching.stats import Statistics

_SAMPLED = 1 << 16  # elements of a parameter that are read, at most: no copy of a whole model
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class _Moments(NamedTuple):
    """What Adam remembers of one parameter, and the gradient that comes next."""

    place: int
    gradient: Tensor
    square: Tensor
    age: float | Tensor
    beta: float
    epsilon: float


class OptimizerState:
    """Reads the age of the state after each update, and Adam's second moments before it."""

    emits: ClassVar[tuple[Signal, ...]] = (OPTIMIZER_AGE, ADAM_TINY_FRACTION, ADAM_SURPRISE)
    at: ClassVar[tuple[type, ...]] = (BeforeUpdate, AfterUpdate)
    depth: ClassVar[Depth] = Depth.REGULAR
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._stats = Statistics()
        self._known: tuple[tuple[torch.device, tuple[float, ...]], Tensor] | None = None

    def read(self, moment: BeforeUpdate | AfterUpdate) -> Iterable[Reading]:
        """The age of each optimizer that counts; what Adam keeps, in steps that are read whole."""
        subject, optimizer = moment.subject, moment.subject.optimizer()
        if moment.depth < self.depth or optimizer is None:
            return ()
        if isinstance(moment, AfterUpdate):
            age = age_of(subject, optimizer)
            return () if age is None else (Reading(OPTIMIZER_AGE, subject.owner, age),)
        return self._adam(subject, optimizer) if moment.depth is Depth.FULL else ()

    @torch.no_grad()
    def _adam(self, subject: Subject, optimizer: Optimizer) -> list[Reading]:
        alike: dict[tuple[torch.device, float], list[_Moments]] = {}
        for buffer in _moments(subject, optimizer):
            alike.setdefault((buffer.square.device, buffer.epsilon), []).append(buffer)
        if not alike:
            return []
        moments = [buffer for group in alike.values() for buffer in group]
        tiny, surprise = self._whole(subject, moments) or self._sampled(alike.values())
        scale = vars(optimizer).get("grad_scale")  # by which a fused optimizer divides by itself
        if isinstance(scale, Tensor):
            surprise = surprise / scale.to(surprise.device, non_blocking=True)
        places = [buffer.place for buffer in moments]
        return [
            Reading(ADAM_TINY_FRACTION, subject.names, tiny, places),
            Reading(ADAM_SURPRISE, subject.names, surprise, places),
        ]

    def _whole(self, subject: Subject, moments: Sequence[_Moments]) -> tuple[Tensor, Tensor] | None:
        """Share under epsilon and root mean square ratio by one launch; None where it cannot be."""
        first = moments[0].square.device
        if first.type != "cuda" or any(each.square.device != first for each in moments):
            return None
        gradients = [buffer.gradient for buffer in moments]
        squares = [buffer.square for buffer in moments]
        limits = torch.stack([_corrections(moments), self._epsilons(moments)])
        read = self._stats.adam(gradients, squares, limits, like=subject)
        return None if read is None else (read[0], read[1])

    def _epsilons(self, moments: Sequence[_Moments]) -> Tensor:
        """The epsilon of each, on the device; kept, for it hardly ever changes."""
        key = moments[0].square.device, tuple(buffer.epsilon for buffer in moments)
        if self._known is None or self._known[0] != key:
            self._known = key, sent(key[1], torch.float32, key[0])
        return self._known[1]

    def _sampled(self, alike: Iterable[Sequence[_Moments]]) -> tuple[Tensor, ...]:
        """The same from a part of each parameter, by torch's own operations."""
        return gathered([self._ratios(group) for group in alike]).unbind(1)

    def _ratios(self, moments: Sequence[_Moments]) -> Tensor:
        """The share under epsilon, and the root mean square ratio: a row for each parameter."""
        squares, epsilon = [_part(buffer.square) for buffer in moments], moments[0].epsilon
        sizes = [square.numel() for square in squares]
        roots = torch.cat(squares).sqrt_()
        torch._foreach_div_(torch.split(roots, sizes), _corrections(moments).unbind())
        low = torch.split((roots < epsilon).float(), sizes)
        ratios = torch.cat([_part(buffer.gradient) for buffer in moments]).div_(
            roots.clamp_min_(epsilon)
        )
        tiny = torch.stack(torch._foreach_norm(low, 1))  # noqa: SLF001
        norms = self._stats.norms(torch.split(ratios, sizes))
        shares = self._stats.shares(torch.stack([tiny, norms.square()]), squares)
        return torch.stack([shares[0], shares[1].sqrt()], 1)


def age_of(subject: Subject, optimizer: Optimizer) -> list[float] | Tensor | None:
    """The count of the first parameter that has one."""
    for parameter in subject.parameters[: subject.held]:
        state = optimizer.state.get(parameter)
        if state:
            count = state.get("step") if isinstance(state, dict) else None
            if isinstance(count, Tensor) and count.numel() == 1:
                return [count.item()] if count.device.type == "cpu" else count.reshape(1)
            return [count] if isinstance(count, int | float) else None
    return None


def _moments(subject: Subject, optimizer: Optimizer) -> list[_Moments]:
    places = {
        id(parameter): place for place, parameter in enumerate(subject.parameters[: subject.held])
    }
    moments = []
    for group in optimizer.param_groups:
        epsilon, betas = group.get("eps"), group.get("betas")
        if not isinstance(epsilon, float) or epsilon <= 0:
            continue
        if not isinstance(betas, tuple | list) or len(betas) < 2:
            continue
        if not isinstance(betas[1], float) or not 0 < betas[1] < 1:
            continue
        for parameter in group["params"]:
            state = optimizer.state.get(parameter)
            place = places.get(id(parameter))
            if state and place is not None:
                one = _of_one(place, parameter, state, betas[1], epsilon)
                if one is not None:
                    moments.append(one)
    return moments


def _of_one(
    place: int, parameter: Tensor, state: Any, beta: float, epsilon: float
) -> _Moments | None:
    gradient, age = parameter.grad, state.get("step")
    # What AMSGrad divides by is the largest so far.
    square = state.get("max_exp_avg_sq", state.get("exp_avg_sq"))
    if (
        not isinstance(gradient, Tensor)
        or not isinstance(square, Tensor)
        or not _is_plain(gradient)
        or not _is_plain(square)
        or square.shape != gradient.shape
        or square.device != gradient.device
    ):
        return None
    if isinstance(age, Tensor):
        age = age.item() if age.device.type == "cpu" else age.detach()
    if isinstance(age, Tensor):
        if age.device != square.device:
            return None
    elif not isinstance(age, int | float) or age < 1:
        return None
    return _Moments(place, gradient.detach(), square.detach(), age, beta, epsilon)


def _is_plain(tensor: Tensor) -> bool:
    """Whether a tensor has numbers of its own to read: states of 8 bits and shards have not."""
    return (
        type(tensor) is Tensor
        and tensor.dtype in _FLOATS
        and tensor.layout is torch.strided
        and tensor.numel() > 0
    )


def _part(tensor: Tensor) -> Tensor:
    flat = tensor.detach().reshape(-1)
    return flat[:: -(-flat.numel() // _SAMPLED)].float()


def _corrections(moments: Sequence[_Moments]) -> Tensor:
    """What the root of each second moment is divided by, as it starts from zero."""
    device = moments[0].square.device
    if not any(isinstance(buffer.age, Tensor) for buffer in moments):
        corrections = [math.sqrt(1 - buffer.beta**buffer.age) for buffer in moments]
        return sent(corrections, torch.float32, device)
    ages = [
        buffer.age.reshape(())
        if isinstance(buffer.age, Tensor)
        else torch.full((), buffer.age, dtype=torch.float32, device=device)
        for buffer in moments
    ]
    rates = {math.log(buffer.beta) for buffer in moments}
    logs = (
        rates.pop()
        if len(rates) == 1
        else sent([math.log(b.beta) for b in moments], torch.float32, device)
    )
    return (-torch.expm1(torch.stack(ages).float() * logs)).sqrt()
