"""A guard keeps the operation of a birth from what it cannot be given, and nothing else."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from holter.lab.birth import find
from holter.lab.birth.guards import OperationGuard
from holter.lab.setup import LossPhase, Setup

Loss = Callable[[nn.Module, Tensor], Tensor]


def log_of_a_probability(model: nn.Module, x: Tensor) -> Tensor:
    return -torch.log(torch.sigmoid(1e3 * model(x))).mean()


def root_of_a_distance(model: nn.Module, x: Tensor) -> Tensor:
    return ((model(x) - model(x)) ** 2).sum(1).sqrt().mean()


def power_of_a_distance(model: nn.Module, x: Tensor) -> Tensor:
    return (((model(x) - model(x)) ** 2).sum(1) ** 0.5).mean()


def division(model: nn.Module, x: Tensor) -> Tensor:
    return (model(x) / (x[:, :1] - x[:, :1])).mean()


def division_of_a_number(model: nn.Module, x: Tensor) -> Tensor:
    return (1 / (model(x) * 0)).mean()


def softmax_by_hand(model: nn.Module, x: Tensor) -> Tensor:
    e = (model(x) * 0 + torch.tensor([100.0, 90.0, 80.0])).exp()
    return (e / e.sum(1, keepdim=True)).square().mean()


def angle(model: nn.Module, x: Tensor) -> Tensor:
    y = nn.functional.normalize(model(x), dim=1)
    return torch.acos((y * y).sum(1) * 1.0001).mean()


def masked_row(model: nn.Module, x: Tensor) -> Tensor:
    return (model(x) + torch.tensor(float("-inf"))).softmax(1).square().mean()


def spread_of_one(model: nn.Module, x: Tensor) -> Tensor:
    y = model(x)[:1]
    return ((y - y.mean(0)) / y.std(0)).mean() + y.mean()


def division_by_a_count(model: nn.Module, x: Tensor) -> Tensor:
    kept = x[:, 0] > 1e9
    return (model(x).sum(1) * kept).sum() / kept.sum()


def empty_mean(model: nn.Module, x: Tensor) -> Tensor:
    return model(x)[x[:, 0] > 1e9].mean() + model(x).mean()


def cancelled_variance(model: nn.Module, x: Tensor) -> Tensor:
    var = torch.tensor([1.0, 0.0, 4.0]) - model(x).detach().square() * 0
    return (model(x) / torch.sqrt(var)).mean()


class _Softplus(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return nn.functional.softplus(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        e = torch.exp(x)
        return grad * e / (1 + e)


def gradient_by_hand(model: nn.Module, x: Tensor) -> Tensor:
    y: Tensor = _Softplus.apply(model(x) * 0 + 88)
    return (y * 100).mean()


def negative_determinant(model: nn.Module, x: Tensor) -> Tensor:
    swapped = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    return torch.logdet(swapped + 1e-3 * model(x)[:, :2, None]).mean()


LOSSES = (
    *(log_of_a_probability, root_of_a_distance, power_of_a_distance, division),
    *(division_of_a_number, softmax_by_hand, angle, masked_row, spread_of_one),
    *(division_by_a_count, cancelled_variance, empty_mean, gradient_by_hand, negative_determinant),
)


def setup_of(loss: Loss) -> tuple[Setup, Tensor]:
    torch.manual_seed(0)
    model, x = nn.Linear(4, 3), torch.randn(6, 4)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    phase = LossPhase(lambda batch: loss(model, batch), (optimizer,))
    return Setup({"": model}, (phase,), [x]), x


@pytest.mark.filterwarnings("ignore:std")  # of a single value
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
def test_a_guarded_step_is_finite(loss: Loss) -> None:
    setup, x = setup_of(loss)
    birth = find(lambda: setup.loss(x), setup.models, setup.optimizers, samples=6)
    assert birth is not None
    assert OperationGuard.exists_for(birth)
    guard = OperationGuard(birth)
    with guard.change.on_setup.applied(setup) as guarded:
        assert torch.tensor(guarded.step(x)).isfinite()
    assert guard.calls > 0
    assert all(each.isfinite().all() for each in setup.model.parameters())


def test_a_guard_acts_at_its_line_alone() -> None:
    setup, x = setup_of(division)
    birth = find(lambda: setup.loss(x), setup.models, setup.optimizers, samples=6)
    assert birth is not None
    guard = OperationGuard(replace(birth, where=f"{birth.where}0"))
    with guard.change.on_setup.applied(setup) as guarded:
        assert not torch.tensor(guarded.step(x)).isfinite()
    assert guard.calls == 0


@pytest.mark.parametrize(
    "loss",
    [
        lambda model, x: (model(x) * 1e30 * 1e30).mean(),
        lambda model, x: ((model(x) * 1e30) ** 2).mean(),
    ],
    ids=["product", "power"],
)
def test_an_overflow_is_no_fault_of_the_operation(loss: Loss) -> None:
    setup, x = setup_of(loss)
    birth = find(lambda: setup.loss(x), setup.models, setup.optimizers, samples=6)
    assert birth is not None
    assert birth.kind == "overflow"
    assert not OperationGuard.exists_for(birth)


def test_an_operand_that_passed_through_zero_is_kept_well_away_from_it() -> None:
    """At the smallest number its loss is finite, and out of all proportion."""

    def likelihood(model: nn.Module, x: Tensor) -> Tensor:
        variance = model(x)[:, 0] * 0 + spread
        sigma = torch.sqrt(variance)
        return (0.5 * (0.1 / sigma) ** 2 + torch.log(sigma)).mean()

    spread = 0.05
    setup, x = setup_of(likelihood)
    before = setup.loss(x).item()
    spread = -0.001
    birth = find(lambda: setup.loss(x), setup.models, setup.optimizers, samples=6)
    assert birth is not None
    assert birth.kind == "outside domain"
    guard = OperationGuard(birth)
    with guard.change.on_setup.applied(setup) as guarded:
        spread = 0.05
        assert guarded.loss(x).item() == before
        spread = -0.001
        assert guarded.loss(x).item() < 10


def test_another_operation_of_the_line_is_kept_in_its_domain_as_well() -> None:
    var = torch.tensor([1.0, 0.0, 4.0])

    def loss(model: nn.Module, x: Tensor) -> Tensor:
        return (model(x) / torch.sqrt(var)).mean()

    setup, x = setup_of(loss)
    birth = find(lambda: setup.loss(x), setup.models, setup.optimizers, samples=6)
    assert birth is not None and (birth.operation, birth.kind) == ("div", "division by zero")
    guard = OperationGuard(birth)
    var -= torch.tensor([0.0, 1e-4, 0.0])  # cancellation goes on, below zero
    with guard.change.on_setup.applied(setup) as guarded:
        assert torch.tensor(guarded.step(x)).isfinite()
