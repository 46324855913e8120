"""Numbers that a script changes from step to step, held in a replay."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from failures import window
from torch import Tensor, nn

import holter
from holter import check
from holter.diagnosis.facts.replayed_changes import ChangeFamily
from holter.diagnosis.facts.replays import Replayed, replayed
from holter.lab.replay.investigating import whole
from holter.lab.setup import LossPhase, Setup
from holter.lab.writing import Lab

STEPS, BROKEN = 60, 45  # from this step on the exponents are too large


class Steps:
    """What a script gives its steps: inputs, and a number that grows."""

    def __init__(self, *, bad: int | None) -> None:
        torch.manual_seed(0)
        self._bad = bad
        self._inputs = [torch.randn(8, 4) for _ in range(STEPS)]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for step, x in enumerate(self._inputs):
            sharp = 1.0 if step < BROKEN or self._bad is not None else 200.0
            yield {"x": x * 1e6 if step == self._bad else x, "sharp": sharp, "step": step}


def training(*, bad: int | None = None) -> Setup:
    steps = Steps(bad=bad)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)

    def loss(batch: dict[str, Any]) -> Tensor:
        gap = (model(batch["x"]) - batch["x"].sum(1, keepdim=True)).abs()
        return torch.exp(batch["sharp"] * gap).mean()

    return Setup({"": model}, (LossPhase(loss, (optimizer,)),), steps)


def investigated(path: Path, *, bad: int | None = None, momentum: float | None = None) -> Replayed:
    """Train and replay; with `momentum`, that of the later steps, and no number that grows."""
    bad = STEPS if momentum is not None else bad
    setup = training(bad=bad)
    (optimizer,) = setup.optimizers
    drawn = {}
    with holter.watch(setup.model, optimizer, path, quiet=True, budget=None):
        for step, batch in enumerate(setup.train):
            drawn[step] = [batch]
            if momentum is not None and step >= BROKEN - 20:
                optimizer.param_groups[0]["momentum"] = momentum
            loss = setup.loss(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    again = window(path, training(bad=bad))
    again._drawn = drawn
    with Lab(path) as lab:
        list(whole(again, lab))
    found = replayed(holter.Run.load(path))
    assert found is not None
    return found


def test_a_number_that_breaks_the_training_is_held(tmp_path: Path) -> None:
    found = investigated(tmp_path / "run")
    assert found.proven_cure is not None
    assert found.proven_cure.name == "held sharp=1"
    assert not found.is_data
    leading = check(holter.Run.load(tmp_path / "run")).findings[0]
    assert leading.rule in ("changed-settings", "nonfinite-birth")


def test_a_counter_is_not_held_where_one_batch_is_bad(tmp_path: Path) -> None:
    found = investigated(tmp_path / "run", bad=BROKEN)
    assert not any(name.startswith("held") for name in found.changes)
    assert found.is_data


def test_an_option_of_the_optimizer_that_is_changed_is_held(tmp_path: Path) -> None:
    found = investigated(tmp_path / "run", momentum=3.0)
    assert "held momentum=0" in found.changes
    assert "held momentum=0" in found.cured_by(ChangeFamily.SETTING)
