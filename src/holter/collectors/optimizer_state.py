"""What optimizers keep of the past: their own count of steps, and the second moments of Adam."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer

from holter.collectors import Reading
from holter.collectors.moments import AfterUpdate, BeforeUpdate, Depth
from holter.collectors.roster import Subject
from holter.signals import ADAM_SURPRISE, ADAM_TINY_FRACTION, OPTIMIZER_AGE, Signal
from holter.stats import Statistics

_SAMPLED = 1 << 16  # elements of a parameter that are read, at most: no copy of a whole model
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class _Moments(NamedTuple):
    """What Adam remembers of one parameter, and the gradient that comes next; parts of them."""

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

    def read(self, moment: BeforeUpdate | AfterUpdate) -> Iterable[Reading]:
        """The age of each optimizer that counts; what Adam keeps, in steps that are read whole."""
        subject, optimizer = moment.subject, moment.subject.optimizer()
        if moment.depth < self.depth or optimizer is None:
            return ()
        if isinstance(moment, AfterUpdate):
            age = _age(subject, optimizer)
            return () if age is None else (Reading(OPTIMIZER_AGE, subject.owner, age),)
        return self._adam(subject, optimizer) if moment.depth is Depth.FULL else ()

    @torch.no_grad()
    def _adam(self, subject: Subject, optimizer: Optimizer) -> list[Reading]:
        moments = _moments(subject, optimizer)
        if not moments:
            return []
        roots = torch._foreach_sqrt([each.square for each in moments])  # noqa: SLF001
        torch._foreach_div_(roots, _corrections(moments))
        epsilons = [each.epsilon for each in moments]
        lifted = torch._foreach_clamp_min(roots, epsilons)  # noqa: SLF001
        above = self._stats.difference(roots, lifted)[:, 2]
        torch._foreach_reciprocal_(lifted)
        torch._foreach_mul_(lifted, [each.gradient for each in moments])
        sizes = [each.square for each in moments]
        ratio = self._stats.shares(self._stats.norms(lifted).square(), sizes).sqrt()
        scale = vars(optimizer).get("grad_scale")  # by which a fused optimizer divides by itself
        if isinstance(scale, Tensor):
            ratio = ratio / scale.to(ratio.device, non_blocking=True)
        places = [each.place for each in moments]
        tiny = 1 - self._stats.shares(above, sizes)
        return [
            Reading(ADAM_TINY_FRACTION, subject.names, tiny, places),
            Reading(ADAM_SURPRISE, subject.names, ratio, places),
        ]


def _age(subject: Subject, optimizer: Optimizer) -> list[float] | Tensor | None:
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
    places = {id(each): place for place, each in enumerate(subject.parameters[: subject.held])}
    found = []
    for group in optimizer.param_groups:
        epsilon, betas = group.get("eps"), group.get("betas")
        if not isinstance(epsilon, float) or epsilon <= 0:
            continue
        if not isinstance(betas, tuple | list) or not isinstance(betas[-1], float):
            continue
        for parameter in group["params"]:
            state = optimizer.state.get(parameter)
            place = places.get(id(parameter))
            if state and place is not None:
                each = _of_one(place, parameter, state, betas[1], epsilon)
                if each is not None:
                    found.append(each)
    return found


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
    return _Moments(place, _part(gradient), _part(square), age, beta, epsilon)


def _is_plain(tensor: Tensor) -> bool:
    """Whether a tensor has numbers of its own to read: states of 8 bits and shards have not."""
    return (
        type(tensor) is Tensor
        and tensor.dtype in _FLOATS
        and tensor.layout is torch.strided
        and tensor.numel() > 0
    )


def _part(tensor: Tensor) -> Tensor:
    tensor = tensor.detach()
    if tensor.numel() > _SAMPLED:
        tensor = tensor.reshape(-1)[:: -(-tensor.numel() // _SAMPLED)].contiguous()
    return tensor.float()


def _corrections(moments: Sequence[_Moments]) -> Any:
    """What the root of each second moment is divided by, as it starts from zero."""
    if not any(isinstance(each.age, Tensor) for each in moments):
        return [math.sqrt(1 - each.beta**each.age) for each in moments]
    alike: dict[tuple[torch.device, float], list[int]] = {}
    for index, each in enumerate(moments):
        alike.setdefault((each.square.device, each.beta), []).append(index)
    found: dict[int, Tensor] = {}
    for (device, beta), indices in alike.items():
        ages = torch.stack(
            [
                each.reshape(()).float()
                if isinstance(each, Tensor)
                else torch.full((), each, device=device)
                for each in (moments[index].age for index in indices)
            ]
        )
        found |= zip(indices, (1 - torch.pow(beta, ages)).sqrt().unbind(), strict=True)
    return [found[index] for index in range(len(moments))]
