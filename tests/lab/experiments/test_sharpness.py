import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.utils.data import DataLoader, TensorDataset

from holter import Run, check
from holter.lab.experiments._geometry.curvature import (
    Objective,
    largest_eigenvalue,
    stability,
    twice_differentiable,
)
from holter.lab.experiments._geometry.landscape import Landscape
from holter.lab.inapplicable import InapplicableError
from holter.lab.running import run
from holter.lab.setup import Setup
from holter.lab.state import State
from holter.record.events import NotApplicable
from holter.record.signals import (
    SHARPNESS_BOUND,
    SHARPNESS_DESCENT,
    SHARPNESS_DISTANCE,
    SHARPNESS_EIGENVALUE,
    SHARPNESS_LOSS,
    SHARPNESS_PLANE,
    SHARPNESS_RESIDUAL,
    SHARPNESS_START,
)
from lab.experiments.trainings import HEALTHY

QUICK = {"steps": 10, "directions": 2, "points": 5}


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(6, 4)
        self.block = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.1, batch_first=True)
        self.head = nn.Linear(4, 6)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.block(self.embed(tokens))).transpose(1, 2)


def models() -> dict[str, tuple[nn.Module, TensorDataset]]:
    torch.manual_seed(0)
    x, images = torch.randn(128, 10), torch.randn(64, 1, 6, 6)
    tokens = torch.randint(6, (64, 6))
    cnn = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2)
    )
    return {
        "mlp": (
            nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, 2)),
            TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long()),
        ),
        "cnn": (cnn, TensorDataset(images, (images.mean((1, 2, 3)) > 0).long())),
        "transformer": (Attention(), TensorDataset(tokens, tokens.roll(1, 1))),
    }


def setup_of(kind: str, optimizer: str, steps: int = 10) -> Setup:
    model, data = models()[kind]
    made: torch.optim.Optimizer = (
        torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
        if optimizer == "sgd"
        else torch.optim.Adam(model.parameters(), 1e-3)
    )
    setup = Setup.of(model, made, nn.CrossEntropyLoss(), DataLoader(data, 16, shuffle=True))
    batches = setup.endless()
    for _ in range(steps):
        setup.step(next(batches))
    return setup


def dense(objective: Objective) -> Tensor:
    """The whole Hessian, a row for each weight."""
    (loss,) = objective.losses()
    first = torch.autograd.grad(loss, objective.parameters, create_graph=True)
    rows = [
        torch.cat(
            [
                each.reshape(-1)
                for each in torch.autograd.grad(
                    entry, objective.parameters, retain_graph=True, materialize_grads=True
                )
            ]
        )
        for entry in torch.cat([each.reshape(-1) for each in first])
    ]
    hessian = torch.stack(rows).double()
    return (hessian + hessian.T) / 2


@pytest.mark.parametrize("kind", ["mlp", "cnn", "transformer"])
def test_eigenvalues_are_those_of_the_dense_hessian(kind: str) -> None:
    setup = setup_of(kind, "adam")
    objective = Objective(setup, setup.batches(1))
    allowed = stability(setup.phases[0], objective.parameters)
    assert allowed.bound == pytest.approx(38 / 1e-3)
    assert allowed.scale is not None
    root = allowed.scale.sqrt()
    start = torch.randn(len(root), generator=torch.Generator().manual_seed(1))
    how = {"iterations": 60, "tolerance": 1e-3}
    with twice_differentiable():
        hessian = dense(objective)
        plain = largest_eigenvalue(objective.product, start, **how)
        felt = largest_eigenvalue(lambda v: root * objective.product(root * v), start, **how)
    true = torch.linalg.eigvalsh(hessian)[-1]
    scaled = root.double()[:, None] * hessian * root.double()
    assert plain.value == pytest.approx(float(true), rel=1e-3)
    assert felt.value == pytest.approx(float(torch.linalg.eigvalsh(scaled)[-1]), rel=1e-3)
    assert max(plain.residual, felt.residual) <= 1e-3


def test_products_are_means_over_batches_and_sums_over_a_step() -> None:
    setup = setup_of("mlp", "sgd", 0)
    batches = setup.batches(2)
    vector = torch.randn(sum(each.numel() for each in setup.model.parameters()))
    one, other = (dense(Objective(setup, [each])).float() @ vector for each in batches)
    both = Objective(setup, batches).product(vector)
    torch.testing.assert_close(both, (one + other) / 2, rtol=1e-4, atol=1e-5)
    accumulated = Objective(replace(setup, accumulation=2), batches).product(vector)
    torch.testing.assert_close(accumulated, one + other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("low", [-50.0, 0.0])
def test_the_largest_of_a_known_spectrum_whatever_is_below_zero(low: float) -> None:
    values = torch.linspace(low, 3.0, 200, dtype=torch.float64)
    values[-1] = 4.0
    start = torch.randn(200, generator=torch.Generator().manual_seed(0)).double()
    found = largest_eigenvalue(lambda v: values * v, start, iterations=80, tolerance=1e-3)
    assert found.value == pytest.approx(4.0, rel=2e-3)


def quadratic(eigenvalues: list[float], optimizer: str, **how: float) -> Setup:
    """A loss of which the Hessian is known."""
    model = nn.Linear(len(eigenvalues), 1, bias=False)
    nn.init.constant_(model.weight, 0.1)
    curvature = torch.tensor(eigenvalues)

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        return 0.5 * (curvature * model.weight**2).sum() + 0 * batch.sum()

    made = getattr(torch.optim, optimizer)(model.parameters(), **how)
    return Setup.of(model, made, loss, [torch.zeros(4, 1)] * 4)


@pytest.mark.parametrize(
    ("optimizer", "how", "bound"),
    [
        ("SGD", {"lr": 0.1}, 20.0),
        ("SGD", {"lr": 0.1, "momentum": 0.9}, 38.0),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}, 38 / 2.8),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.9}, 380.0),
    ],
)
def test_bounds_are_where_steps_begin_to_overshoot(
    optimizer: str, how: dict[str, float], bound: float
) -> None:
    parameter = nn.Parameter(torch.ones(1))

    def final(eigenvalue: float) -> float:
        parameter.data.fill_(1.0)
        made = getattr(torch.optim, optimizer)([parameter], **how)
        for _ in range(2000):
            parameter.grad = eigenvalue * parameter.detach()
            made.step()
        return abs(float(parameter.detach()))

    setup = quadratic([1.0], optimizer, **how)
    assert stability(setup.phases[0], []).bound == pytest.approx(bound)
    assert final(0.99 * bound) < 1e-3
    assert not final(1.01 * bound) < 1e3


def test_rates_of_groups_scale_the_hessian(tmp_path: Path) -> None:
    first, second = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
    model = nn.ModuleList([first, second])

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        return 0.5 * (8 * first.weight**2 + 3 * second.weight**2).sum() + 0 * batch.sum()

    groups = [{"params": first.parameters(), "lr": 0.01}, {"params": second.parameters()}]
    optimizer = torch.optim.SGD(groups, lr=0.1)
    made = run("sharpness", Setup.of(model, optimizer, loss, [torch.zeros(2, 1)]), tmp_path / "run")
    values = {trial: float(each.values[0]) for trial, each in made[SHARPNESS_EIGENVALUE].items()}
    assert values == pytest.approx({"hessian": 8.0, "preconditioned": 3.0})
    assert float(made[SHARPNESS_BOUND]["preconditioned"].values[0]) == pytest.approx(20.0)


def judged(setup: Setup, folder: Path, **options: object) -> tuple[Run, list[str]]:
    before = State(setup).digest
    made = run("sharpness", setup, folder, **options)
    assert State(setup).digest == before
    checkup = check(made, select=["unstable-curvature"])
    said = [*checkup.findings, *checkup.normal, *checkup.clear, *checkup.not_examined]
    return made, [type(each).__name__ for each in said]


@pytest.mark.parametrize("rate", [0.05, 0.19])
def test_a_stable_rate_is_clear(rate: float, tmp_path: Path) -> None:
    made, said = judged(quadratic([10.0, 2.0, 0.5], "SGD", lr=rate), tmp_path / "run", steps=0)
    assert said[-1] == "Clear"
    assert "Finding" not in said
    assert float(made[SHARPNESS_EIGENVALUE]["hessian"].values[0]) == pytest.approx(10.0, rel=1e-3)


def test_an_unstable_rate_is_found_with_what_a_lower_one_does(tmp_path: Path) -> None:
    made, said = judged(quadratic([10.0, 2.0, 0.5], "SGD", lr=0.5), tmp_path / "run")
    assert said == ["Finding"]
    assert made[SHARPNESS_START][""].values[0] == 0  # training made it worse
    losses = made[SHARPNESS_DESCENT]
    assert losses["as set"].values[1] > losses["as set"].values[0] > losses["reduced"].values[-1]


def test_full_batches_rest_at_the_edge_of_stability(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(256, 10)
    model = nn.Sequential(
        nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2)
    )
    train = DataLoader(TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long()), 256)
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    setup = Setup.of(model, optimizer, nn.CrossEntropyLoss(), train)
    made, said = judged(setup, tmp_path / "run", directions=1, points=3)
    assert said == ["Normal", "Clear"]
    ratio = made[SHARPNESS_EIGENVALUE]["hessian"].values / made[SHARPNESS_BOUND]["hessian"].values
    assert 0.7 < float(ratio[0]) < 1.5


@pytest.mark.parametrize("kind", ["mlp", "regression", "cnn", "language_model", "vae", "gan"])
def test_says_nothing_of_healthy_trainings(kind: str, tmp_path: Path) -> None:
    made, said = judged(HEALTHY[kind](), tmp_path / "run", **QUICK)
    assert said == ["Clear"]
    assert all(each.values[0] <= 1e-2 for each in made[SHARPNESS_RESIDUAL].values())


def test_the_middle_of_each_direction_is_the_loss_itself(tmp_path: Path) -> None:
    setup = setup_of("cnn", "sgd", 60)
    made = run(
        "sharpness", setup, tmp_path / "run", steps=0, directions=3, points=5, plane=True, side=3
    )
    distances = made[SHARPNESS_DISTANCE]["line"].values
    assert distances.tolist() == [-1.0, -0.5, 0.0, 0.5, 1.0]
    middles = [each.values[2] for each in made[SHARPNESS_LOSS].values()]
    plane = made[SHARPNESS_PLANE][""].values
    assert len(plane) == 9
    assert max(middles) - min(middles) < 1e-6
    assert plane[4] == pytest.approx(middles[0])


def test_directions_have_filters_as_long_as_those_of_the_weights() -> None:
    setup = setup_of("cnn", "sgd", 0)
    weights = list(setup.model.parameters())
    landscape = Landscape(setup, setup.batches(1), weights)
    drawn = landscape.direction(torch.Generator().manual_seed(0))
    for one, other in zip(weights, drawn, strict=True):
        if one.dim() < 2:
            assert not other.any()
        else:
            lengths = (each.detach().flatten(1).norm(dim=1) for each in (one, other))
            torch.testing.assert_close(*lengths)


def test_dropout_and_modes_are_left_alone(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.5), nn.Linear(16, 1))
    x = torch.randn(32, 4)
    train = DataLoader(TensorDataset(x, x[:, :1]), 8)
    setup = Setup.of(model, torch.optim.SGD(model.parameters(), 0.01), nn.MSELoss(), train)
    made, _ = judged(setup, tmp_path / "run", **QUICK)
    assert model.training
    assert made[SHARPNESS_RESIDUAL]["hessian"].values[0] <= 1e-3  # the same dropout each time


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x.round()

    @staticmethod
    @once_differentiable
    def backward(ctx: object, grad: Tensor) -> Tensor:
        return grad


def declined(model: nn.Module, loss: object, batch: object, folder: Path) -> str:
    setup = Setup.of(model, torch.optim.SGD(model.parameters(), 0.01), loss, [batch] * 4)
    made, said = judged(setup, folder, **QUICK)
    assert said == ["NotExamined"]
    assert SHARPNESS_LOSS in made  # directions need no second derivative
    (event,) = made.events_of(NotApplicable)
    return event.what.why


def test_names_operators_without_a_second_derivative(tmp_path: Path) -> None:
    model = nn.EmbeddingBag(8, 4)

    def squares(model: nn.Module, batch: Tensor) -> Tensor:
        return (model(batch) ** 2).mean()

    why = declined(model, squares, torch.randint(8, (6, 3)), tmp_path / "bag")
    assert "_embedding_bag_backward" in why

    def rounded(model: nn.Module, batch: Tensor) -> Tensor:
        return (Rounded.apply(model(batch)) ** 2).mean()

    why = declined(nn.Linear(3, 2), rounded, torch.randn(6, 3), tmp_path / "own")
    assert "RoundedBackward" in why


def test_optimizers_without_a_known_bound(tmp_path: Path) -> None:
    model = nn.Linear(4, 1)
    x = torch.randn(32, 4)
    train = DataLoader(TensorDataset(x, x[:, :1]), 8)
    setup = Setup.of(model, torch.optim.Rprop(model.parameters()), nn.MSELoss(), train)
    made, said = judged(setup, tmp_path / "run", **QUICK)
    assert said == ["NotExamined"]
    assert SHARPNESS_EIGENVALUE in made
    assert SHARPNESS_BOUND not in made


def test_adam_without_a_state_has_no_bound() -> None:
    setup = setup_of("mlp", "adam", 0)
    with pytest.raises(InapplicableError, match="no state"):
        stability(setup.phases[0], Objective(setup, setup.batches(1)).parameters)


def test_losses_that_are_not_finite(tmp_path: Path) -> None:
    setup = quadratic([1.0, math.nan], "SGD", lr=0.1)
    _, said = judged(setup, tmp_path / "run", **QUICK)
    assert said == ["NotExamined"]
