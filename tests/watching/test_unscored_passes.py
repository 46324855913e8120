"""Evaluation passes without a loss function: outputs are counted against labels of the loader."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.module import _global_forward_pre_hooks
from torch.utils.data import DataLoader, TensorDataset

from holter import Run, watch
from holter.record.events import PassMeasured
from holter.record.signals import VAL_ACCURACY, VAL_LOSS

Evaluate = Callable[[nn.Module, DataLoader], None]


def by_hand(model: nn.Module, loader: DataLoader) -> None:
    with torch.no_grad():
        for x, y in loader:
            (model(x).argmax(1) == y).sum().item()


def by_numpy(model: nn.Module, loader: DataLoader) -> None:
    with torch.inference_mode():
        for x, y in loader:
            (model(x).numpy().argmax(1) == y.numpy()).mean()


def in_two_views(model: nn.Module, loader: DataLoader) -> None:
    with torch.no_grad():
        for x, y in loader:
            ((model(x) + model(-x)).argmax(1) == y).sum().item()


def with_a_loss(model: nn.Module, loader: DataLoader) -> None:
    with torch.no_grad():
        for x, y in loader:
            functional.cross_entropy(model(x), y).item()


def trained(
    folder: Path, evaluate: Evaluate, *, model: nn.Module | None = None, loss: Any = None
) -> tuple[Run, list[float], list[float]]:
    """Train for three epochs; return the run, and losses and accuracies computed beside it."""
    torch.manual_seed(0)
    y = torch.randint(3, (240,))
    x = torch.randn(3, 6)[y] + torch.randn(240, 6)
    train_loader = DataLoader(TensorDataset(x[:160], y[:160]), 32)
    valid_loader = DataLoader(TensorDataset(x[160:], y[160:]), 32)
    model = model or nn.Linear(6, 3)
    loss = loss or nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses, rates = [], []
    with watch(model, optimizer, out=folder, quiet=True):
        for _ in range(3):
            model.train()
            for inputs, targets in train_loader:
                optimizer.zero_grad()
                loss(model(inputs), targets).backward()
                optimizer.step()
            model.eval()
            evaluate(model, valid_loader)
            losses.append(expected(model, x[160:], y[160:]))
            with torch.no_grad():
                rates.append((model(x[160:]).argmax(1) == y[160:]).double().mean().item())
    return Run.load(folder), losses, rates


def expected(model: nn.Module, x: Tensor, y: Tensor) -> float:
    with torch.no_grad():
        return -model(x).log_softmax(1)[torch.arange(len(y)), y].mean().item()


@pytest.mark.parametrize("evaluate", [by_hand, by_numpy])
def test_loss_and_accuracy_are_those_of_the_pass(evaluate: Evaluate, tmp_path: Path) -> None:
    run, losses, rates = trained(tmp_path / "run", evaluate)
    (owner,) = run[VAL_LOSS]
    assert owner == "cross_entropy on valid_loader"
    assert run[VAL_LOSS][owner].values.tolist() == pytest.approx(losses, rel=1e-5)
    assert run[VAL_ACCURACY][owner].values.tolist() == pytest.approx(rates)
    assert [event.what.targets for event in run.events_of(PassMeasured)] == [80, 80, 80]


def test_outputs_of_log_softmax_are_taken_as_they_are(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(6, 3), nn.LogSoftmax(1))
    run, losses, _ = trained(tmp_path / "run", by_hand, model=model, loss=nn.NLLLoss())
    (owner,) = run[VAL_LOSS]
    assert run[VAL_LOSS][owner].values.tolist() == pytest.approx(losses, rel=1e-5)


def test_a_pass_with_a_loss_is_not_counted_twice(tmp_path: Path) -> None:
    run, losses, _ = trained(tmp_path / "run", with_a_loss)
    (owner,) = run[VAL_LOSS]
    assert run[VAL_LOSS][owner].values.tolist() == pytest.approx(losses, rel=1e-5)
    assert [event.what.targets for event in run.events_of(PassMeasured)] == [80, 80, 80]


def scaled(scores: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(30 * scores, y)


@pytest.mark.parametrize(
    ("evaluate", "model", "loss"),
    [
        pytest.param(in_two_views, nn.Linear(6, 3), None, id="two views of a batch"),
        pytest.param(by_hand, nn.Sequential(nn.Linear(6, 3), nn.Softmax(1)), None, id="shares"),
        pytest.param(by_hand, nn.Linear(6, 3), scaled, id="scaled in training"),
    ],
)
def test_nothing_is_recorded_of_other_outputs(
    evaluate: Evaluate, model: nn.Module, loss: Any, tmp_path: Path
) -> None:
    run, _, _ = trained(tmp_path / "run", evaluate, model=model, loss=loss)
    assert VAL_LOSS not in run
    assert any("validation losses are not recorded" in note for note in run.meta.notes)


def test_no_hook_is_left_on_the_model(tmp_path: Path) -> None:
    model = nn.Linear(6, 3)
    before = dict(_global_forward_pre_hooks)
    trained(tmp_path / "run", by_hand, model=model)
    assert not model._forward_hooks
    assert dict(_global_forward_pre_hooks) == before
