"""A guard keeps the operation of a birth from what it cannot be given, and nothing else."""

from collections.abc import Callable
from dataclasses import replace

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


LOSSES = (
    *(log_of_a_probability, root_of_a_distance, power_of_a_distance, division),
    *(division_of_a_number, softmax_by_hand, angle, masked_row),
)


def setup_of(loss: Loss) -> tuple[Setup, Tensor]:
    torch.manual_seed(0)
    model, x = nn.Linear(4, 3), torch.randn(6, 4)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    phase = LossPhase(lambda batch: loss(model, batch), (optimizer,))
    return Setup({"": model}, (phase,), [x]), x


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


def test_an_operation_without_a_singularity_has_no_guard() -> None:
    setup, x = setup_of(lambda model, x: (model(x) * 1e30 * 1e30).mean())
    birth = find(lambda: setup.loss(x), setup.models, setup.optimizers, samples=6)
    assert birth is not None
    assert birth.kind == "overflow"
    assert not OperationGuard.exists_for(birth)
