"""Curvature of the loss: its Hessian, the largest eigenvalue, and what optimizers bear of it."""

import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.optim import SGD, Adagrad, Adam, Optimizer, RMSprop

from holter.lab.inapplicable import InapplicableError
from holter.lab.randomness import same_randomness
from holter.lab.setup import Batch, LossPhase, Setup

_FEWEST = 8  # iterations before a value may be taken for the largest


@dataclass(frozen=True, slots=True)
class Eigenvalue:
    """The largest eigenvalue of a symmetric operator, and by which share of it it may be off."""

    value: float
    residual: float
    iterations: int


@dataclass(frozen=True, slots=True)
class Stability:
    """The eigenvalue above which an optimizer's steps at `rate` overshoot more each time.

    `scale` is the length of each weight's step for a gradient of 1, as a share of `rate`; None
    where that is 1 everywhere.
    """

    bound: float
    rate: float
    scale: Tensor | None = None


class Objective:
    """The loss of a training's first phase on fixed batches, as a function of its weights.

    Modes are those of the training; random numbers are the same each time.
    """

    def __init__(self, setup: Setup, batches: Sequence[Batch]) -> None:
        self._setup, self._batches = setup, batches
        # Batches of one step are summed, as the step itself does it; several steps are averaged.
        self._steps = len(batches) / setup.accumulation
        held = setup.phases[0].parameters
        self.parameters = [*{id(each): each for each in held if each.requires_grad}.values()]
        if not self.parameters:
            raise InapplicableError("the optimizer holds no trainable parameter")
        if any(parameter.dtype in (torch.float16, torch.bfloat16) for parameter in self.parameters):
            raise InapplicableError("curvature needs float32 weights; these are half precision")

    def losses(self) -> Iterator[Tensor]:
        """The part of each batch in the loss, with its graph."""
        for batch in self._batches:
            with same_randomness(self._setup):
                loss = self._setup.loss(batch)
            yield loss.mean() / self._steps

    def product(self, vector: Tensor) -> Tensor:
        """The Hessian times `vector`."""
        total = torch.zeros_like(vector)
        for loss in self.losses():
            total += self._product(loss, vector)
        return total

    def reject_single_derivatives(self) -> None:
        """Raise where an operator of the loss has no second derivative, and name it."""
        for loss in self.losses():
            gradients = self._gradients(loss)
            # Such a function only cuts its graph off: the product would be wrong in silence.
            if "Error" in {type(node).__name__ for node in _graph(gradients)}:
                own = sorted({type(node).__name__ for node in _graph([loss]) if _is_own(node)})
                raise InapplicableError(
                    f"{', '.join(own) or 'an operator'} of the loss can be differentiated only once"
                )
            return

    def _product(self, loss: Tensor, vector: Tensor) -> Tensor:
        gradients = self._gradients(loss)
        split = zip(gradients, self._split(vector), strict=True)
        pairs = [(each, part) for each, part in split if each.requires_grad]
        if not pairs:  # the loss is linear in the weights
            return torch.zeros_like(vector)
        return _flat(
            torch.autograd.grad(
                [each for each, _ in pairs],
                self.parameters,
                [part for _, part in pairs],
                materialize_grads=True,
            )
        )

    def _gradients(self, loss: Tensor) -> tuple[Tensor, ...]:
        if not loss.requires_grad:
            raise InapplicableError("the loss has no graph to differentiate")
        return torch.autograd.grad(loss, self.parameters, create_graph=True, materialize_grads=True)

    def _split(self, vector: Tensor) -> list[Tensor]:
        parts = torch.split(vector, [parameter.numel() for parameter in self.parameters])
        return [
            part.view_as(each).to(each) for part, each in zip(parts, self.parameters, strict=True)
        ]


def largest_eigenvalue(
    multiply: Callable[[Tensor], Tensor], start: Tensor, *, iterations: int, tolerance: float
) -> Eigenvalue:
    """The largest eigenvalue of what `multiply` applies, by Lanczos iteration from `start` on.

    That is power iteration with a memory: it needs as many products, gets far closer, and is not
    misled by an eigenvalue that is far below 0.
    """
    now, before = start / start.norm(), torch.zeros_like(start)
    diagonal: list[float] = []
    beside: list[float] = []
    value = residual = math.nan
    for number in range(1, iterations + 1):
        image = multiply(now) - (beside[-1] if beside else 0.0) * before
        diagonal.append(float(image @ now))
        image = image - diagonal[-1] * now
        length = float(image.norm())
        if not math.isfinite(length):
            return Eigenvalue(math.nan, math.nan, number)
        small = torch.diag(torch.tensor(diagonal, dtype=torch.float64))
        if beside:
            edge = torch.tensor(beside, dtype=torch.float64)
            small = small + torch.diag(edge, 1) + torch.diag(edge, -1)
        values, vectors = torch.linalg.eigh(small)
        value = float(values[-1])
        size = float(values.abs().max())
        residual = length * abs(float(vectors[-1, -1])) / size if size else 0.0
        exhausted = length <= 1e-6 * size  # all directions that there are
        if exhausted or (number >= _FEWEST and residual <= tolerance):
            return Eigenvalue(value, residual, number)
        beside.append(length)
        before, now = now, image / length
    return Eigenvalue(value, residual, iterations)


def stability(phase: LossPhase, parameters: Sequence[Tensor]) -> Stability:
    """What the optimizers of a phase bear; raises where nobody knows."""
    steps: dict[int, Tensor | float] = {}
    limits = set()
    for optimizer in phase.optimizers:
        for group in optimizer.param_groups:
            if group.get("maximize"):
                raise InapplicableError("the optimizer maximises the loss")
            limits.add(round(_limit(optimizer, group), 9))
            for each in group["params"]:
                steps[id(each)] = float(group["lr"]) / _preconditioner(optimizer, group, each)
    if len(limits) > 1:
        raise InapplicableError("no stability bound is known for groups with different momentum")
    rate = max(float(g["lr"]) for each in phase.optimizers for g in each.param_groups)
    if not rate > 0:
        raise InapplicableError(f"the learning rate is {rate:.3g}: no step can be unstable")
    bound = limits.pop() / rate
    lengths = [
        torch.as_tensor(steps[id(parameter)] / rate).to(parameter) for parameter in parameters
    ]
    if all(length.dim() == 0 and float(length) == 1 for length in lengths):
        return Stability(bound, rate)
    scale = _flat([a.expand_as(b) for a, b in zip(lengths, parameters, strict=True)])
    return Stability(bound, rate, scale)


@contextmanager
def twice_differentiable() -> Iterator[None]:
    """Inside, what has fast kernels without a second derivative is computed the plain way."""
    with ExitStack() as stack:
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        stack.enter_context(torch.backends.cudnn.flags(enabled=False))
        if "torch._dynamo" in sys.modules:
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        try:
            yield
        except torch.OutOfMemoryError as error:
            raise InapplicableError(
                "second derivatives of this loss do not fit into memory"
            ) from error
        except RuntimeError as error:
            lacking = re.search(r"derivative for '?([\w:]+)'? is not implemented", str(error))
            if lacking:
                told = f"{lacking[1]} has no second derivative"
            else:
                told = f"the loss cannot be differentiated twice: {str(error).splitlines()[0]}"
            raise InapplicableError(told) from error


def _limit(optimizer: Optimizer, group: dict[str, Any]) -> float:
    """Eigenvalue times learning rate, over the preconditioner, that is just stable."""
    momentum = float(group.get("momentum", 0.0))
    if type(optimizer) is SGD:
        if group["nesterov"]:
            return (2 + 2 * momentum) / (1 + 2 * momentum)
        damping = float(group["dampening"]) if momentum else 0.0
        return (2 + 2 * momentum) / (1 - damping) if damping < 1 else math.inf
    if isinstance(optimizer, Adam):  # AdamW as well
        momentum = float(group["betas"][0])
        return (2 + 2 * momentum) / (1 - momentum)
    if type(optimizer) is RMSprop and not group["centered"]:
        return 2 + 2 * momentum
    if type(optimizer) is Adagrad:
        return 2.0
    raise InapplicableError(f"no stability bound is known for {type(optimizer).__name__}")


def _preconditioner(
    optimizer: Optimizer, group: dict[str, Any], parameter: Tensor
) -> Tensor | float:
    """What an adaptive optimizer divides the gradient of a parameter by."""
    if type(optimizer) is SGD:
        return 1.0
    state = optimizer.state.get(parameter, {})
    name = {RMSprop: "square_avg", Adagrad: "sum"}.get(type(optimizer), "exp_avg_sq")
    step = float(state.get("step", 0))
    if not step:
        if not parameter.requires_grad:
            return 1.0
        raise InapplicableError(
            f"{type(optimizer).__name__} has no state at these weights to bound the curvature by"
        )
    second, factor = state[name], 1.0
    if type(optimizer) is Adagrad:
        factor = 1 + (step - 1) * float(group["lr_decay"])
    elif type(optimizer) is not RMSprop:
        beta1, beta2 = map(float, group["betas"])
        second = state["max_exp_avg_sq" if group["amsgrad"] else name] / (1 - beta2**step)
        factor = 1 - beta1**step
    divisor: Tensor = (second.sqrt() + group["eps"]) * factor
    return divisor


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([tensor.detach().reshape(-1).to(tensors[0]) for tensor in tensors])


def _graph(roots: Sequence[Tensor]) -> set[Any]:
    """All nodes of the graphs behind some tensors."""
    seen: set[Any] = set()
    waiting = [root.grad_fn for root in roots if root.grad_fn is not None]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += [following for following, _ in node.next_functions if following is not None]
    return seen


def _is_own(node: Any) -> bool:
    return isinstance(node, torch.autograd.function.BackwardCFunction)
