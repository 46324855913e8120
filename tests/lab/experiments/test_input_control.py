from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from holter.diagnosis.engine import Checkup
from holter.lab.running import run
from holter.lab.setup import Setup
from holter.record.findings import Confidence
from holter.record.signals import INPUT_LOSS
from lab.experiments.trainings import HEALTHY, adam, checked, loader, points


def checkup(setup: Setup, folder: Path) -> Checkup:
    return checked("input-control", "ignored-inputs", setup, folder)


@pytest.mark.parametrize("kind", HEALTHY)
def test_says_nothing_of_healthy_trainings(kind: str, tmp_path: Path) -> None:
    said = checkup(HEALTHY[kind](), tmp_path / "run")
    assert said.findings == ()
    not_told = {"with_nan_at_once", "parts_called_one_by_one"}
    assert bool(said.clear) is (kind not in not_told)


def trained(model: nn.Module, loss: Any = None, **how: Any) -> Setup:
    torch.manual_seed(0)
    optimizer = adam(model, how.get("lr", 1e-3))
    return Setup.of(model, optimizer, loss or nn.CrossEntropyLoss(), loader(*points()))


def sequential(*layers: nn.Module) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 32), *layers, nn.Linear(32, 4))


class Dropped(nn.Module):
    """A copy of the input's shape goes on in its place."""

    def __init__(self) -> None:
        super().__init__()
        self.body = sequential(nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        return self.body(torch.ones_like(x))


def dead() -> nn.Module:
    model = sequential(nn.ReLU())
    nn.init.constant_(model[0].bias, -100.0)
    return model


@pytest.mark.parametrize(
    "model",
    [Dropped, dead, lambda: sequential(nn.Dropout(1.0))],
    ids=["overwritten", "dead", "dropped out"],
)
def test_finds_inputs_that_do_not_matter(model: Any, tmp_path: Path) -> None:
    (finding,) = checkup(trained(model()), tmp_path / "run").findings
    assert finding.confidence is Confidence.CERTAIN


def test_attention_that_sees_nothing(tmp_path: Path) -> None:
    class Blind(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.embed = nn.Parameter(torch.randn(1, 1, 16)), nn.Linear(1, 16)
            self.head = nn.Linear(16, 4)

        def forward(self, x: Tensor) -> Tensor:
            keys = self.embed(x[..., None])
            weights = (self.query @ keys.transpose(1, 2)).masked_fill(torch.ones(8).bool(), -1e9)
            return self.head((weights.softmax(2) @ torch.ones_like(keys)).squeeze(1))

    (finding,) = checkup(trained(Blind()), tmp_path / "run").findings
    assert finding.confidence is Confidence.CERTAIN


def test_a_head_at_zero_that_does_not_move_tells_nothing(tmp_path: Path) -> None:
    model = sequential(nn.ReLU())
    nn.init.zeros_(model[2].weight)
    nn.init.zeros_(model[2].bias)
    said = checkup(trained(model, lr=0.0), tmp_path / "run")
    assert "no weight moved" in said.not_examined[0].because


def test_the_same_batch_again_and_again_tells_by_its_samples(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x, y = points(32)
    for model, ignored in ((sequential(nn.ReLU()), False), (Dropped(), True)):
        setup = Setup.of(model, adam(model), nn.CrossEntropyLoss(), [(x, y)])
        said = checkup(setup, tmp_path / str(ignored))
        assert bool(said.findings) is ignored
        assert bool(said.clear) is not ignored


def test_one_input_of_two_is_a_hint(tmp_path: Path) -> None:
    class Conditioned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = sequential(nn.ReLU())

        def forward(self, x: Tensor, condition: Tensor) -> Tensor:
            return self.body(x)

    def loss(model: nn.Module, batch: Any) -> Tensor:
        return functional.cross_entropy(model(batch[0], batch[0][:, :1]), batch[1])

    said = checkup(trained(Conditioned(), loss), tmp_path / "run")
    (finding,) = said.findings
    assert finding.confidence is Confidence.HINT
    assert "the input condition" in finding.summary


def test_labels_given_to_the_model_are_no_inputs(tmp_path: Path) -> None:
    class Whole(nn.Module):
        def __init__(self, body: nn.Module) -> None:
            super().__init__()
            self.body = body

        def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
            logits = self.body(x)
            each = functional.cross_entropy(logits, labels, reduction="none")
            return {"losses": each, "logits": logits}

    def loss(model: nn.Module, batch: Any) -> Tensor:
        return model(batch[0], labels=batch[1])["losses"].mean()

    assert checkup(trained(Whole(Dropped()), loss), tmp_path / "sick").findings
    assert checkup(trained(Whole(sequential(nn.ReLU())), loss), tmp_path / "healthy").clear


def test_a_fitted_batch_needs_its_own_inputs(tmp_path: Path) -> None:
    setup = trained(sequential(nn.ReLU()), lr=1e-2)
    made = run("input-control", setup, tmp_path / "run", steps=60)
    own, other = (made[INPUT_LOSS][name].values[-1] for name in ("own inputs", "other inputs"))
    assert own < 0.2 * other
