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
from holter.record.findings import Confidence
from holter.record.signals import ACCUMULATION_DEVIATION, ACCUMULATION_RESIDUAL, ACCUMULATION_SCALE
from lab.experiments.trainings import HEALTHY, Causal, adam, checked, loader, points, text


def checkup(setup: Setup, folder: Path) -> Checkup:
    return checked("accumulation", "uneven-accumulation", setup, folder)


@pytest.mark.parametrize("kind", HEALTHY)
def test_says_nothing_of_healthy_trainings(kind: str, tmp_path: Path) -> None:
    assert checkup(HEALTHY[kind](), tmp_path / "run").findings == ()


def answers(*, batch: int = 8, longest: int = 12, accumulated: int = 4, **how: Any) -> Setup:
    """A language model that is trained on the ends of texts, of different lengths."""
    torch.manual_seed(0)
    tokens = text()
    wanted = tokens[:, 1:].clone()
    lengths = torch.where(torch.rand(256) < 0.1, longest, 1)
    wanted[torch.arange(12) < 12 - lengths[:, None]] = -100

    def loss(model: nn.Module, batch: Any) -> Tensor:
        return functional.cross_entropy(model(batch[0]).transpose(1, 2), batch[1], **how)

    model = Causal()
    train = loader(tokens[:, :-1], wanted, batch=batch)
    setup = Setup.of(model, adam(model), loss, train)
    return replace(setup, accumulation=accumulated)


def test_batches_with_few_answers_count_too_much(tmp_path: Path) -> None:
    (finding,) = checkup(answers(), tmp_path / "run").findings
    assert finding.confidence is Confidence.LIKELY
    assert finding.evidence[0].signal is ACCUMULATION_DEVIATION
    assert "the 4 batches of a step" in finding.summary


def test_without_accumulation_it_is_normal(tmp_path: Path) -> None:
    said = checkup(answers(accumulated=1), tmp_path / "run")
    assert said.findings == ()
    assert "accumulated gradients would" in said.normal[0].summary


def test_answers_of_one_length_are_fine(tmp_path: Path) -> None:
    assert checkup(answers(longest=1), tmp_path / "run").clear[0].because


def test_a_sum_is_normal(tmp_path: Path) -> None:
    said = checkup(answers(reduction="sum"), tmp_path / "run")
    assert said.findings == ()
    assert "4 times the mean over its 4 parts" in said.normal[0].summary


def test_weights_of_classes_make_targets_count_unlike(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
    weighed = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 1.0, 1.0, 40.0]))
    setup = Setup.of(model, adam(model), weighed, loader(*points()))
    made = run("accumulation", setup, tmp_path / "run")
    residuals = {name: float(each.values[-1]) for name, each in made[ACCUMULATION_RESIDUAL].items()}
    assert residuals["mean by targets"] < 1e-5 < residuals["mean"]
    assert checkup(setup, tmp_path / "again").normal


@pytest.mark.parametrize("batch", [2, 3, 7, 16])
def test_gradients_of_parts_are_those_of_the_whole(batch: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    x, y = points()
    model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.Dropout(0.5), nn.Linear(32, 4))
    setup = Setup.of(model, adam(model), nn.CrossEntropyLoss(), loader(x, y, batch=batch))
    made = run("accumulation", setup, tmp_path / "run")
    assert made[ACCUMULATION_RESIDUAL]["mean"].values[-1] < 1e-5
    assert made[ACCUMULATION_SCALE][""].values[-1] == pytest.approx(1, abs=1e-5)
