from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from holter.diagnosis.engine import Checkup
from holter.lab.setup import Setup
from holter.record.findings import Confidence
from lab.experiments.trainings import HEALTHY, adam, checked, loader, points


def checkup(setup: Setup, folder: Path) -> Checkup:
    return checked("eval-gap", "eval-mode-gap", setup, folder)


@pytest.mark.parametrize("kind", HEALTHY)
def test_says_nothing_of_healthy_trainings(kind: str, tmp_path: Path) -> None:
    assert checkup(HEALTHY[kind](), tmp_path / "run").findings == ()


def normed(*, momentum: float | None = 0.1, dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(8, 48), nn.BatchNorm1d(48, momentum=momentum), nn.ReLU(), nn.Dropout(dropout),
        nn.Linear(48, 4),
    )  # fmt: skip


def trained(model: nn.Module, *, noise: bool = False, batch: int = 32, **how: Any) -> Setup:
    torch.manual_seed(0)
    x, y = points()
    y = torch.randint(4, (len(y),)) if noise else y
    train = loader(x, y, batch=batch, drop_last=True, **how)
    return Setup.of(model, adam(model, 1e-2), nn.CrossEntropyLoss(), train)


@pytest.mark.parametrize("momentum", [None, 0.001, 0.1, 1.0])
@pytest.mark.parametrize("noise", [False, True])
def test_batches_of_32_are_fine_whatever_the_momentum(
    momentum: float | None, noise: bool, tmp_path: Path
) -> None:
    said = checkup(trained(normed(momentum=momentum), noise=noise), tmp_path / "run")
    assert said.findings == ()
    assert said.clear


@pytest.mark.parametrize("dropout", [0.2, 0.8])
def test_dropout_is_better_in_eval_mode(dropout: float, tmp_path: Path) -> None:
    assert checkup(trained(normed(dropout=dropout)), tmp_path / "run").clear


def test_running_statistics_that_never_move(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x, y = points()
    model = normed(momentum=0.0)
    train = loader(20 * x + 30, y, batch=32)
    setup = Setup.of(model, adam(model, 1e-2), nn.CrossEntropyLoss(), train)
    (finding,) = checkup(setup, tmp_path / "run").findings
    assert finding.confidence is Confidence.LIKELY
    assert finding.evidence[2].owner == "1"
    assert "momentum" in finding.fix


def test_tiny_batches_that_are_learned_by_their_company(tmp_path: Path) -> None:
    (finding,) = checkup(trained(normed(), noise=True, batch=4), tmp_path / "run").findings
    assert "4 values per channel" in finding.summary
    assert "GroupNorm" in finding.fix


def test_another_output_in_eval_mode_is_a_hint(tmp_path: Path) -> None:
    class Probable(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 4))

        def forward(self, x: Tensor) -> Tensor:
            logits = self.body(x)
            return logits if self.training else logits.softmax(1)

    (finding,) = checkup(trained(Probable()), tmp_path / "run").findings
    assert finding.confidence is Confidence.HINT


def test_training_in_eval_mode_is_another_matter(tmp_path: Path) -> None:
    said = checkup(trained(normed().eval()), tmp_path / "run")
    assert "eval mode" in said.not_examined[0].because
