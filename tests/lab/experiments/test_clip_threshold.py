from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from holter import Run, check
from holter.lab.running import run
from holter.lab.setup import LossPhase, Setup
from holter.lab.state import State
from holter.record.signals import CLIP_THRESHOLD_LIMIT, CLIP_THRESHOLD_LOSS, CLIP_THRESHOLD_NORM
from lab.experiments.trainings import HEALTHY


def regression(optimizer: str = "SGD", *, lr: float = 0.02, max_norm: float | None = None) -> Setup:
    torch.manual_seed(0)
    x = torch.randn(256, 8)
    y = torch.sin(x[:, :1]) + x[:, 1:2]
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    made = getattr(torch.optim, optimizer)(model.parameters(), lr)
    train = DataLoader(TensorDataset(x, y), 32, shuffle=True)
    return Setup.of(model, made, nn.MSELoss(), train, max_norm=max_norm)


def judged(setup: Setup, folder: Path, **options: object) -> tuple[Run, list[str]]:
    before = State(setup).digest
    made = run("clip-threshold", setup, folder, **options)
    assert State(setup).digest == before
    checkup = check(made, select=["misplaced-clip-threshold"])
    said = [*checkup.findings, *checkup.normal, *checkup.clear, *checkup.not_examined]
    return made, [type(each).__name__ for each in said]


def norms_by_hand(setup: Setup, steps: int) -> list[float]:
    """A plain training loop, with the norm before clipping."""
    phase, norms = setup.phases[0], []
    state, batches = State(setup), setup.endless()
    for _ in range(steps):
        (optimizer,) = phase.optimizers
        optimizer.zero_grad()
        setup.loss(next(batches)).backward()
        gradients = torch.cat([each.grad.flatten() for each in setup.model.parameters()])
        norms.append(float(gradients.norm()))
        if phase.max_norm is not None:
            nn.utils.clip_grad_norm_(setup.model.parameters(), phase.max_norm)
        optimizer.step()
    state.restore()
    return norms


@pytest.mark.parametrize("max_norm", [None, 0.3])
def test_norms_are_those_before_the_trainings_own_clipping(
    max_norm: float | None, tmp_path: Path
) -> None:
    setup = regression(max_norm=max_norm)
    wanted = norms_by_hand(setup, 40)
    made, _ = judged(setup, tmp_path / "run", steps=40)
    np.testing.assert_allclose(made[CLIP_THRESHOLD_NORM][""].values, wanted, rtol=1e-5)
    if max_norm is None:
        assert CLIP_THRESHOLD_LIMIT not in made
    else:
        assert made[CLIP_THRESHOLD_LIMIT][""].values[0] == pytest.approx(max_norm)


@pytest.mark.parametrize("max_norm", [None, 0.1, 1.0, 2.0])
def test_usual_limits_are_clear(max_norm: float | None, tmp_path: Path) -> None:
    _, said = judged(regression(max_norm=max_norm), tmp_path / "run")
    assert said[-1] == "Clear"
    assert "Finding" not in said


def test_a_limit_that_holds_sgd_back(tmp_path: Path) -> None:
    made, said = judged(regression(max_norm=1e-3), tmp_path / "run")
    assert said == ["Finding"]
    losses = made[CLIP_THRESHOLD_LOSS]
    assert losses["advised"].values[-20:].mean() < 0.5 * losses["as set"].values[-20:].mean()


def test_adam_does_not_mind(tmp_path: Path) -> None:
    made, said = judged(regression("Adam", lr=3e-3, max_norm=1e-3), tmp_path / "run")
    assert said == ["Normal", "Clear"]
    assert "advised" in made[CLIP_THRESHOLD_LOSS]


def test_a_rate_made_for_the_limit_is_no_fault(tmp_path: Path) -> None:
    _, said = judged(regression(lr=20.0, max_norm=2e-3), tmp_path / "run")
    assert "Finding" not in said


def test_a_limit_that_nothing_reaches_is_a_note(tmp_path: Path) -> None:
    _, said = judged(regression(max_norm=1e4), tmp_path / "run")
    assert said == ["Normal", "Clear"]


@pytest.mark.parametrize("kind", ["lstm", "language_model", "gan", "in_bfloat16"])
def test_says_nothing_of_healthy_trainings(kind: str, tmp_path: Path) -> None:
    made, said = judged(HEALTHY[kind](), tmp_path / "run", steps=40)
    assert set(said) == {"Clear"}
    assert all(len(each) == 40 for each in made[CLIP_THRESHOLD_NORM].values())


def test_each_phase_has_its_norms(tmp_path: Path) -> None:
    setup = HEALTHY["gan"]()
    clipped = tuple(replace(each, max_norm=0.1 + n) for n, each in enumerate(setup.phases))
    made, _ = judged(replace(setup, phases=clipped), tmp_path / "run", steps=25)
    limits = {trial: float(each.values[0]) for trial, each in made[CLIP_THRESHOLD_LIMIT].items()}
    assert limits == pytest.approx({"loss 0": 0.1, "loss 1": 1.1})
    assert {len(each) for each in made[CLIP_THRESHOLD_NORM].values()} == {25}


def test_accumulated_batches_are_one_norm(tmp_path: Path) -> None:
    setup = replace(regression(), accumulation=2)
    made, _ = judged(setup, tmp_path / "run", steps=25)
    assert len(made[CLIP_THRESHOLD_NORM][""]) == 25


def test_slow_steps_are_fewer(tmp_path: Path) -> None:
    made, said = judged(regression(), tmp_path / "run", seconds=0.0)
    assert len(made[CLIP_THRESHOLD_NORM][""]) == 20
    assert said == ["Clear"]


def test_trainings_without_norms(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)

    def loss(batch: Tensor) -> Tensor:
        return model(batch).mean().detach()

    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    setup = Setup({"": model}, (LossPhase(loss, (optimizer,)),), [torch.randn(4, 2)])
    assert judged(setup, tmp_path / "none")[1] == ["NotExamined"]
    assert judged(HEALTHY["with_nan_at_once"](), tmp_path / "nan")[1] == ["NotExamined"]
    searching = LossPhase(setup.phases[0].loss, (torch.optim.LBFGS(model.parameters()),))
    lbfgs = replace(setup, phases=(searching,))
    assert judged(lbfgs, tmp_path / "lbfgs")[1] == ["NotExamined"]
