from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from holter.diagnosis.engine import Checkup
from holter.lab.setup import Setup
from holter.record.findings import Clear, Confidence, Finding
from lab.experiments.trainings import HEALTHY, Causal, adam, checked, loader, next_token, text


def checkup(setup: Setup, folder: Path) -> Checkup:
    return checked("causality", "leaking-future", setup, folder)


def found(setup: Setup, folder: Path) -> tuple[Finding, ...]:
    return checkup(setup, folder).findings


@pytest.mark.parametrize("kind", HEALTHY)
def test_says_nothing_of_healthy_trainings(kind: str, tmp_path: Path) -> None:
    said = checkup(HEALTHY[kind](), tmp_path / "run")
    assert said.findings == ()
    others = {"loss_inside_the_model", "teacher_forcing_by_chance", "translator"}
    assert bool(said.clear) is ("language_model" in kind or kind in others)


def trained(model: nn.Module, loss: Any = next_token, **how: Any) -> Setup:
    torch.manual_seed(0)
    return Setup.of(model, adam(model), loss, loader(text(), **how))


def test_a_missing_mask_is_certain_and_named(tmp_path: Path) -> None:
    (finding,) = found(trained(Causal(mask="none")), tmp_path / "run")
    assert finding.confidence is Confidence.CERTAIN
    assert finding.evidence[1].owner == "block.self_attn"
    assert "11 of 11 outputs" in finding.summary
    assert "output 4 on inputs 5 to 11" in finding.summary


def test_a_mask_that_is_off_by_one(tmp_path: Path) -> None:
    (finding,) = found(trained(Causal(mask="one ahead")), tmp_path / "run")
    assert "output 4 on input 5)" in finding.summary


@pytest.mark.parametrize("batch", [11, 12, 13])
def test_as_many_samples_as_positions(batch: int, tmp_path: Path) -> None:
    assert isinstance(checkup(trained(Causal(), batch=batch), tmp_path / "a").clear[0], Clear)
    assert found(trained(Causal(mask="none"), batch=batch), tmp_path / "b")


@pytest.mark.parametrize("batch", [11, 12])
def test_equal_sizes_need_neither_a_loader_nor_a_single_input(batch: int, tmp_path: Path) -> None:
    class Masked(nn.Module):
        def __init__(self, mask: str) -> None:
            super().__init__()
            self.inner = Causal(mask=mask)

        def forward(self, tokens: Tensor, attended: Tensor) -> Tensor:
            return self.inner(tokens) * attended[..., None]

    def loss(model: nn.Module, batch: Any) -> Tensor:
        tokens = batch[0][:, :-1]
        output = model(tokens, torch.ones_like(tokens))
        return functional.cross_entropy(output.flatten(0, 1), batch[0][:, 1:].flatten())

    def setup(mask: str) -> Setup:
        torch.manual_seed(0)
        model = Masked(mask)
        return Setup.of(model, adam(model), loss, list(loader(text(), batch=batch)))

    assert isinstance(checkup(setup("causal"), tmp_path / "a").clear[0], Clear)
    assert found(setup("none"), tmp_path / "b")


def test_time_first(tmp_path: Path) -> None:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        tokens = batch[0].t()
        return functional.cross_entropy(model(tokens[:-1]).flatten(0, 1), tokens[1:].flatten())

    model = Causal(mask="none", batch_first=False)
    assert found(trained(model, loss), tmp_path / "run")


class Tokens(nn.Module):
    """A model of tokens around some layer that is given (samples, features, positions)."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.embed, self.layer, self.head = nn.Embedding(20, 8), layer, nn.Linear(8, 20)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.layer(self.embed(tokens).transpose(1, 2)).transpose(1, 2))


@pytest.mark.parametrize(
    ("layer", "leaks"),
    [
        (nn.Sequential(nn.ConstantPad1d((2, 0), 0.0), nn.Conv1d(8, 8, 3)), False),
        (nn.Conv1d(8, 8, 3, padding=1), True),
        (nn.LayerNorm(12), True),
        (nn.BatchNorm1d(8), False),
    ],
    ids=["padded on the left", "padded on both sides", "norm over time", "batch norm"],
)
def test_convolutions_and_norms(layer: nn.Module, leaks: bool, tmp_path: Path) -> None:
    assert bool(found(trained(Tokens(layer)), tmp_path / "run")) is leaks


def test_a_bidirectional_recurrence_with_flat_outputs(tmp_path: Path) -> None:
    class Both(nn.Module):
        def __init__(self, both: bool) -> None:
            super().__init__()
            self.embed = nn.Embedding(20, 8)
            self.rnn = nn.LSTM(8, 8, batch_first=True, bidirectional=both)
            self.head = nn.Linear(16 if both else 8, 20)

        def forward(self, tokens: Tensor) -> Tensor:
            return self.head(self.rnn(self.embed(tokens))[0]).flatten(0, 1)

    def loss(model: nn.Module, batch: Any) -> Tensor:
        return functional.cross_entropy(model(batch[0][:, :-1]), batch[0][:, 1:].flatten())

    (finding,) = found(trained(Both(True), loss), tmp_path / "both")
    assert finding.evidence[1].owner == "rnn"
    assert checkup(trained(Both(False), loss), tmp_path / "one").clear


def test_a_leak_that_begins_at_zero(tmp_path: Path) -> None:
    class Gated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.causal, self.gate = Causal(), nn.Parameter(torch.zeros(()))

        def forward(self, tokens: Tensor) -> Tensor:
            logits = self.causal(tokens)
            return logits + self.gate * logits.flip(1)

    (finding,) = found(trained(Gated()), tmp_path / "run")
    assert "after 3 steps" in finding.evidence[0].owner


def test_a_prompt_may_be_read_both_ways(tmp_path: Path) -> None:
    class Prefix(Causal):
        def forward(self, tokens: Tensor) -> Tensor:
            mask = torch.ones(12, 12, dtype=torch.bool).triu(1)
            mask[:5, :5] = False
            return self.head(self.block(self.embed(tokens), src_mask=mask))

    def loss(model: nn.Module, batch: Any) -> Tensor:
        wanted = batch[0][:, 1:].clone()
        wanted[:, :4] = -100
        return functional.cross_entropy(model(batch[0][:, :-1]).transpose(1, 2), wanted)

    assert checkup(trained(Prefix(), loss), tmp_path / "run").clear


def test_values_that_follow_each_other(tmp_path: Path) -> None:
    class Waves(nn.Module):
        def __init__(self, both: bool) -> None:
            super().__init__()
            self.rnn = nn.GRU(2, 8, batch_first=True, bidirectional=both)
            self.head = nn.LazyLinear(2)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.rnn(x)[0])

    torch.manual_seed(0)
    x = torch.randn(128, 11, 2).cumsum(1)
    for both in (True, False):
        model = Waves(both)
        model(x[:2])
        setup = Setup.of(model, adam(model), nn.MSELoss(), loader(x[:, :-1], x[:, 1:]))
        said = checkup(setup, tmp_path / str(both))
        assert bool(said.findings) is both
        assert bool(said.clear) is not both
