from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from holter.lab.setup import Setup
from holter.record.findings import Confidence, Finding
from holter.record.signals import MIXING_MODULES
from lab.experiments.trainings import HEALTHY, Recurrent, adam, checked, loader, points


def found(setup: Setup, folder: Path) -> tuple[Finding, ...]:
    return checked("sample-mixing", "mixed-samples", setup, folder).findings


@pytest.mark.parametrize("kind", HEALTHY)
def test_says_nothing_of_healthy_trainings(kind: str, tmp_path: Path) -> None:
    assert found(HEALTHY[kind](), tmp_path / "run") == ()


class Mixing(nn.Module):
    """An MLP with a mistake in the middle."""

    def __init__(self, mistake: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(8, 32), nn.Linear(32, 4)
        self.mistake = mistake

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.mistake(self.body(x).relu()))


def trained(model: nn.Module, **how: Any) -> Setup:
    torch.manual_seed(0)
    return Setup.of(model, adam(model), nn.CrossEntropyLoss(), loader(*points(), **how))


@pytest.mark.parametrize(
    "mistake",
    [
        lambda h: h - h.mean(0),
        lambda h: h / h.norm(),
        lambda h: h.view(len(h) // 2, 64).softmax(1).view(-1, 32),
        lambda h: h.t().reshape(len(h), 32),
        lambda h: h.cumsum(0),
        lambda h: (h @ h.t()).softmax(1) @ h,
    ],
    ids=["mean", "norm", "view", "reshape", "cumsum", "attention"],
)
def test_finds_what_runs_over_samples(mistake: Callable[[Tensor], Tensor], tmp_path: Path) -> None:
    (finding,) = found(trained(Mixing(mistake)), tmp_path / "run")
    assert finding.confidence is Confidence.LIKELY


def test_softmax_over_the_batch_is_certain(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4), nn.Softmax(dim=0))
    (finding,) = found(trained(model), tmp_path / "run")
    assert finding.confidence is Confidence.CERTAIN
    assert finding.evidence[1].owner == "3"
    assert "dim=-1" in finding.fix


def test_recurrent_layer_without_batch_first_is_certain_and_named(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(256, 10, 3)
    model = Recurrent(batch_first=False, takes=1)
    setup = Setup.of(model, adam(model), nn.MSELoss(), loader(x, x[:, -3:, :1].sum(1)))
    (finding,) = found(setup, tmp_path / "run")
    assert finding.confidence is Confidence.CERTAIN
    assert finding.evidence[1].owner == "rnn"
    assert "batch_first" in finding.fix


def test_transformer_layer_without_batch_first_is_certain(tmp_path: Path) -> None:
    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.TransformerEncoder(
                nn.TransformerEncoderLayer(8, 2, 16), 2, enable_nested_tensor=False
            )
            self.head = nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.encoder(x).mean(1))

    torch.manual_seed(0)
    x, model = torch.randn(128, 6, 8), Classifier()
    setup = Setup.of(model, adam(model), nn.MSELoss(), loader(x, x[:, :, 0].mean(1, keepdim=True)))
    (finding,) = found(setup, tmp_path / "run")
    assert finding.confidence is Confidence.CERTAIN
    assert finding.evidence[1].signal is MIXING_MODULES
    assert finding.evidence[1].owner.startswith("encoder.layers.0")


def test_an_lstm_that_is_given_single_rows_takes_them_for_time(tmp_path: Path) -> None:
    class Rows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.head = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.rnn(x)[0])

    (finding,) = found(trained(Rows()), tmp_path / "run")
    assert finding.confidence is Confidence.LIKELY


def test_what_begins_at_zero_is_found_after_some_steps(tmp_path: Path) -> None:
    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate, self.head = nn.Parameter(torch.zeros(8)), nn.Linear(8, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(x + self.gate * x.flip(0))

    (finding,) = found(trained(Residual()), tmp_path / "run")
    assert "after 3 steps" in finding.evidence[0].owner


def test_without_shuffling_it_is_a_hint(tmp_path: Path) -> None:
    setup = trained(Mixing(lambda h: h - h.mean(0)), shuffle=False)
    (finding,) = found(setup, tmp_path / "run")
    assert finding.confidence is Confidence.HINT


@pytest.mark.parametrize("batch", [2, 3, 4])
def test_small_batches(batch: int, tmp_path: Path) -> None:
    assert found(trained(Mixing(lambda h: h), batch=batch), tmp_path / "healthy") == ()
    assert found(trained(Mixing(lambda h: h - h.mean(0)), batch=batch), tmp_path / "sick")


def test_batch_norm_without_running_statistics_is_normal(tmp_path: Path) -> None:
    norm = nn.BatchNorm1d(32, track_running_stats=False)
    model = nn.Sequential(nn.Linear(8, 32), norm, nn.ReLU(), nn.Linear(32, 4))
    checkup = checked("sample-mixing", "mixed-samples", trained(model), tmp_path / "run")
    assert not checkup.findings
    assert checkup.normal
