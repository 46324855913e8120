from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from holter.diagnosis.engine import Checkup
from holter.lab.running import run
from holter.lab.setup import Setup
from holter.record.events import NotApplicable
from holter.record.findings import Confidence
from holter.record.signals import LABEL_FIT
from lab.experiments.trainings import HEALTHY, adam, checked, loader, points


def checkup(setup: Setup, folder: Path) -> Checkup:
    return checked("label-control", "unrelated-labels", setup, folder)


DECLINED = {
    "the targets are not part of the batch": {
        "contrastive",
        "diffusion",
        "pairs_of_two_towers",
        "policy_gradient",
    },
    "the targets are the inputs": {"vae"},
    "several losses": {"gan"},
    "shifted by one": {
        "language_model",
        "language_model_with_time_first",
        "language_model_without_a_loader",
        "loss_inside_the_model",
        "recurrent_language_model",
        "translator",
    },
}


@pytest.mark.parametrize("kind", HEALTHY)
def test_says_nothing_of_healthy_trainings(kind: str, tmp_path: Path) -> None:
    said = checkup(HEALTHY[kind](), tmp_path / "run")
    assert said.findings == ()
    for why, kinds in DECLINED.items():
        if kind in kinds:
            assert why in said.not_examined[0].because


def trained(x: Tensor, y: Tensor, *, classes: int, lr: float = 3e-3, loss: Any = None) -> Setup:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(x.shape[1], 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, classes)
    )
    train = loader(x, y, batch=32)
    return Setup.of(model, adam(model, lr), loss or nn.CrossEntropyLoss(), train)


def test_labels_that_are_off_by_one_are_a_hint(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x, y = points(2048, features=16)
    assert checkup(trained(x, y, classes=4), tmp_path / "healthy").clear
    (finding,) = checkup(trained(x, y.roll(1), classes=4), tmp_path / "sick").findings
    assert finding.confidence is Confidence.HINT
    assert finding.evidence[0].owner == "true"


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_hard_and_noisy_labels(noise: float, tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(2048, 16)
    y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).long()
    y = torch.where(torch.rand(2048) < noise, 1 - y, y)
    assert checkup(trained(x, y, classes=2), tmp_path / "run").clear


def test_weak_regression(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(2048, 16)
    y = 0.4 * x[:, :1] + torch.randn(2048, 1)
    assert checkup(trained(x, y, classes=1, loss=nn.MSELoss()), tmp_path / "run").clear


def test_a_learning_rate_that_learns_nothing_tells_nothing(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x, y = points(2048)
    said = checkup(trained(x, y.roll(1), classes=4, lr=1e-9), tmp_path / "run")
    assert said.findings == ()
    assert said.not_examined


def test_labels_of_one_class_cannot_be_shuffled(tmp_path: Path) -> None:
    x, _ = points()
    said = checkup(trained(x, torch.zeros(512).long(), classes=2), tmp_path / "run")
    assert "alike" in said.not_examined[0].because


def test_later_epochs_do_not_tell_what_is_held_out(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x, y = points(512, features=16)
    setup = trained(x, y.roll(1), classes=4, lr=1e-2)
    several = [batch for _ in range(5) for batch in setup.train]  # as of a recorded script
    assert checkup(replace(setup, train=several, loaders={}), tmp_path / "run").clear == ()


def test_few_batches_tell_nothing(tmp_path: Path) -> None:
    said = checkup(trained(*points(64), classes=4), tmp_path / "run")
    assert "too few" in said.not_examined[0].because


def test_labels_given_to_the_model(tmp_path: Path) -> None:
    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))

        def forward(self, x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
            logits = self.body(x)
            return functional.cross_entropy(logits, labels), logits

    torch.manual_seed(0)
    model = Whole()
    setup = Setup.of(
        model,
        adam(model, 1e-2),
        lambda model, batch: model(batch[0], labels=batch[1])[0],
        loader(*points(1024)),
    )
    assert checkup(setup, tmp_path / "run").clear


def test_what_takes_too_long_is_left_to_those_who_ask(tmp_path: Path) -> None:
    setup = trained(*points(), classes=4)
    made = run("label-control", setup, tmp_path / "run", seconds=1e-6)
    assert LABEL_FIT not in made
    why = made.events_of(NotApplicable)[0].what.why
    assert "would take" in why or "too slow" in why
