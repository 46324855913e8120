"""Evaluation passes without a loss function: outputs are counted against labels of the loader."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.module import _global_forward_pre_hooks
from torch.utils.data import DataLoader, Dataset, TensorDataset

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
    folder: Path,
    evaluate: Evaluate,
    *,
    model: nn.Module | None = None,
    loss: Any = None,
    device: str = "cpu",
) -> tuple[Run, list[float], list[float]]:
    """Train for three epochs; return the run, and losses and accuracies computed beside it."""
    torch.manual_seed(0)
    y = torch.randint(3, (240,))
    x = torch.randn(3, 6)[y] + torch.randn(240, 6)
    train_loader = DataLoader(TensorDataset(x[:160], y[:160]), 32)
    valid_loader = DataLoader(TensorDataset(x[160:], y[160:]), 32)
    model = (model or nn.Linear(6, 3)).to(device)
    loss = loss or nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses, rates = [], []
    with watch(model, optimizer, out=folder, quiet=True):
        for _ in range(3):
            model.train()
            for inputs, targets in train_loader:
                optimizer.zero_grad()
                loss(model(inputs.to(device)), targets.to(device)).backward()
                optimizer.step()
            model.eval()
            evaluate(model, valid_loader)
            held_out, labels = x[160:].to(device), y[160:].to(device)
            losses.append(expected(model, held_out, labels))
            with torch.no_grad():
                rates.append((model(held_out).argmax(1) == labels).double().mean().item())
    return Run.load(folder), losses, rates


def expected(model: nn.Module, x: Tensor, y: Tensor) -> float:
    with torch.no_grad():
        return -model(x).log_softmax(1).gather(1, y[:, None]).mean().item()


@pytest.mark.parametrize("evaluate", [by_hand, by_numpy])
def test_loss_and_accuracy_are_those_of_the_pass(evaluate: Evaluate, tmp_path: Path) -> None:
    run, losses, rates = trained(tmp_path / "run", evaluate)
    (owner,) = run[VAL_LOSS]
    assert owner == "cross_entropy on valid_loader"
    assert run[VAL_LOSS][owner].values.tolist() == pytest.approx(losses, rel=1e-5)
    assert run[VAL_ACCURACY][owner].values.tolist() == pytest.approx(rates)
    assert [event.what.targets for event in run.events_of(PassMeasured)] == [80, 80, 80]


def on_a_gpu(model: nn.Module, loader: DataLoader) -> None:
    with torch.no_grad():
        for x, y in loader:
            (model(x.to("cuda")).argmax(1) == y.to("cuda")).sum().item()


@pytest.mark.cuda
def test_loss_and_accuracy_on_a_gpu(tmp_path: Path) -> None:
    run, losses, rates = trained(tmp_path / "run", on_a_gpu, device="cuda")
    (owner,) = run[VAL_LOSS]
    assert owner == "cross_entropy on valid_loader"
    assert run[VAL_LOSS][owner].values.tolist() == pytest.approx(losses, rel=1e-4)
    assert run[VAL_ACCURACY][owner].values.tolist() == pytest.approx(rates)
    assert [event.what.targets for event in run.events_of(PassMeasured)] == [80, 80, 80]


def outside_no_grad(model: nn.Module, loader: DataLoader) -> None:
    with torch.no_grad():
        pairs = [(model(x), y) for x, y in loader]
    scores, labels = (torch.cat(part) for part in zip(*pairs, strict=True))
    functional.cross_entropy(scores, labels).item()


def test_a_loss_after_the_pass_counts_in_eval_mode(tmp_path: Path) -> None:
    run, losses, _ = trained(tmp_path / "run", outside_no_grad)
    (owner,) = run[VAL_LOSS]
    assert run[VAL_LOSS][owner].values.tolist() == pytest.approx(losses, rel=1e-5)
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


class Shares(nn.Linear):
    """Returns probabilities in eval mode, as some libraries do."""

    def forward(self, x: Tensor) -> Tensor:
        scores = super().forward(x)
        return scores if self.training else scores.softmax(1)


@pytest.mark.parametrize(
    ("evaluate", "model", "loss"),
    [
        pytest.param(in_two_views, nn.Linear(6, 3), None, id="two views of a batch"),
        pytest.param(by_hand, Shares(6, 3), None, id="shares in eval mode"),
        pytest.param(by_hand, nn.Linear(6, 3), scaled, id="scaled in training"),
    ],
)
def test_nothing_is_recorded_of_other_outputs(
    evaluate: Evaluate, model: nn.Module, loss: Any, tmp_path: Path
) -> None:
    run, _, _ = trained(tmp_path / "run", evaluate, model=model, loss=loss)
    assert VAL_LOSS not in run
    assert any("validation losses" in note for note in run.meta.notes)


class Rows(Dataset[dict[str, Tensor]]):
    """Samples as dictionaries, with a number beside the target that is none."""

    def __init__(self, x: Tensor, y: Tensor) -> None:
        self._x, self._y = x, y

    def __len__(self) -> int:
        return len(self._x)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"x": self._x[index], "rating": self._y[index], "last": self._x[index, 0]}


def squared(scores: Tensor, y: Tensor) -> Tensor:
    return ((scores.squeeze(1) - y) ** 2).mean()


def chances(scores: Tensor, y: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(scores[:, 0], y)


def absolute(scores: Tensor, y: Tensor) -> Tensor:
    return functional.l1_loss(scores, y[:, None])


@pytest.mark.parametrize("loss", [squared, chances, absolute])
def test_the_loss_of_the_training_is_computed_for_any_family(loss: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(240, 6)
    y = x @ torch.randn(6) + 0.1 * torch.randn(240)
    y = (y > 0).float() if loss is chances else y
    train_loader = DataLoader(Rows(x[:160], y[:160]), 32)
    valid_loader = DataLoader(Rows(x[160:], y[160:]), 32)
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    expected_losses = []
    with watch(model, optimizer, out=tmp_path / "run", quiet=True):
        for _ in range(3):
            model.train()
            for batch in train_loader:
                optimizer.zero_grad()
                loss(model(batch["x"]), batch["rating"]).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                for batch in valid_loader:
                    (model(batch["x"])[:, 0] - batch["rating"]).abs().sum().item()
            with torch.no_grad():
                expected_losses.append(_alone(loss, model(x[160:]), y[160:]))
    run = Run.load(tmp_path / "run")
    (owner,) = run[VAL_LOSS]
    assert run[VAL_LOSS][owner].values.tolist() == pytest.approx(expected_losses, rel=1e-4)


def _alone(loss: Any, scores: Tensor, y: Tensor) -> float:
    """The same without a function that holter hears."""
    if loss is squared:
        return squared(scores, y).item()
    if loss is absolute:
        return (scores[:, 0] - y).abs().mean().item()
    chance = scores[:, 0].sigmoid()
    return -torch.where(y > 0, chance, 1 - chance).log().mean().item()


def test_no_hook_is_left_on_the_model(tmp_path: Path) -> None:
    model = nn.Linear(6, 3)
    before = dict(_global_forward_pre_hooks)
    trained(tmp_path / "run", by_hand, model=model)
    assert not model._forward_hooks
    assert dict(_global_forward_pre_hooks) == before
