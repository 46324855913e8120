"""Replays of trainings whose state lies partly outside the step, and of those that depart."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from failures import window
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import holter
from holter.diagnosis.facts.replays import Replayed, replayed
from holter.lab.replay.investigating import whole
from holter.lab.replay.window import FailureWindow, UnknownBatchError
from holter.lab.setup import LossPhase, ScriptWrite, Setup
from holter.lab.writing import Lab

Edit = Callable[[Setup, int], None]
REPLAYED = ("nonfinite-birth", "poisonous-batch", "oversized-steps", "irreproducible-failure")
BAD = 600  # the sample that nothing bears: of step 37, with 16 in a batch


def parts(*, bad: float = math.inf) -> Setup:
    torch.manual_seed(0)
    x = torch.randn(1024, 4)
    y = x.sum(1, keepdim=True)
    y[BAD] = bad
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    return Setup.of(model, optimizer, nn.MSELoss(), DataLoader(TensorDataset(x, y), 16))


def trained(path: Path, setup: Setup, edit: Edit, *, scale: float = 1.0) -> Path:
    (optimizer,) = setup.optimizers
    with holter.watch(setup.model, optimizer, path, quiet=True, budget=None):
        for step, batch in enumerate(setup.train):
            optimizer.zero_grad()
            setup.loss(batch).backward()
            for parameter in setup.model.parameters():
                parameter.grad.mul_(scale)
            optimizer.step()
            edit(setup, step)
    return path


def halve(setup: Setup) -> None:
    setup.model[0].weight.data.mul_(0.5)


def halve_every_fifth(setup: Setup, step: int) -> None:
    if step % 5 == 4:
        halve(setup)


def investigated(seen: FailureWindow) -> Replayed:
    assert seen.run is not None and seen.run.path is not None
    with Lab(seen.run.path) as lab:
        list(whole(seen, lab))
    found = replayed(holter.Run.load(seen.run.path))
    assert found is not None
    return found


def test_edits_of_weights_are_put_back(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", parts(), halve_every_fifth)
    found = investigated(window(run, parts()))
    assert found.verdict == "bit for bit"
    assert found.about.edited == ("0.weight",)
    assert "recorded values" in found.says
    slower = found.changes["learning rate x 0.333"]
    assert slower.outcome == "not applicable" and "not known" in slower.says
    assert found.minimal_cure is not None
    assert found.minimal_cure.name in ("previous batch", "another batch", "step skipped")


def test_statements_that_edit_weights_are_repeated_under_a_change(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", parts(), halve_every_fifth)
    setup = parts()
    write = ScriptWrite("train.py:9: halve()", lambda: halve(setup))
    seen = window(run, replace(setup, phases=(replace(setup.phases[0], rewrite=write),)))
    found = investigated(seen)
    assert found.verdict == "bit for bit"
    assert "train.py:9" in found.says and "replayed as well" in found.says
    assert found.changes["learning rate x 0.333"].outcome == "does not"
    assert all(step % 5 == 0 for step in seen.edits.at)


def test_statements_that_give_other_values_are_not_repeated(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", parts(), halve_every_fifth)
    setup = parts()
    wrong = ScriptWrite("train.py:9", lambda: setup.model[0].weight.data.mul_(0.7))
    seen = window(run, replace(setup, phases=(replace(setup.phases[0], rewrite=wrong),)))
    assert investigated(seen).verdict == "bit for bit"
    assert not seen.edits.are_repeatable


def test_a_replay_that_departs_says_where_and_concludes_nothing(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", parts(), lambda setup, step: None, scale=0.5)
    found = investigated(window(run, parts()))
    assert found.verdict == "not reproduced"
    assert found.about.departs_at == found.first + 1
    assert found.about.tensor in ("0.weight", "0.bias", "3.weight", "3.bias")
    assert found.about.suspects[-1].endswith("the hardware")
    assert len(found.about.suspects) > 1
    assert not found.changes and found.proven_cure is None
    checkup = holter.check(holter.Run.load(run))
    certain = [f.rule for f in checkup.findings if f.rule in REPLAYED and f.confidence == "certain"]
    assert certain == []
    assert not [clear.rule for clear in checkup.clear if clear.rule in REPLAYED]


def test_phases_that_take_turns_are_replayed_in_turn(tmp_path: Path) -> None:
    def made() -> Setup:
        torch.manual_seed(0)
        data = torch.randn(1024, 2)
        data[BAD] = math.nan
        generator, critic = nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 8), nn.Linear(8, 1))
        loader = DataLoader(TensorDataset(data), 16)

        def judge(batch: list[Tensor]) -> Tensor:
            fake = generator(torch.randn(len(batch[0]), 3)).detach()
            return functional.softplus(-critic(batch[0])).mean() + critic(fake).pow(2).mean()

        def deceive(batch: list[Tensor]) -> Tensor:
            return functional.softplus(-critic(generator(torch.randn(len(batch[0]), 3)))).mean()

        return Setup(
            {"generator": generator, "critic": critic},
            (
                LossPhase(judge, (torch.optim.Adam(critic.parameters(), 1e-3),)),
                LossPhase(deceive, (torch.optim.Adam(generator.parameters(), 1e-3),)),
            ),
            loader,
        )

    setup = made()
    models = [setup.models["generator"], setup.models["critic"]]
    with holter.watch(models, list(setup.optimizers), tmp_path / "run", quiet=True, budget=None):
        for place, batch in enumerate(setup.train):
            for phase in setup.phases if place % 3 == 0 else setup.phases[:1]:
                (optimizer,) = phase.optimizers
                optimizer.zero_grad()
                phase.loss(batch).backward()
                optimizer.step()
    found = investigated(window(tmp_path / "run", made()))
    assert found.verdict == "bit for bit"
    assert found.is_data


def test_the_fatal_update_before_the_window_is_told(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", parts(), lambda setup, step: None)
    found = investigated(spoiled(window(run, parts())))
    assert "before the window" in found.about.fatal_before
    assert "0.weight" in found.about.fatal_before


def spoiled(seen: FailureWindow) -> FailureWindow:
    """The same window with weights that were not finite when it began."""
    state = dict(seen.capture.state)
    name = next(name for name in state if name.endswith("0.weight"))
    state[name] = torch.full_like(state[name], math.nan)
    return FailureWindow(parts(), replace(seen.capture, state=state), seen.run)


def test_a_batch_that_is_not_known_is_not_made_up(tmp_path: Path) -> None:
    seen = window(trained(tmp_path / "run", parts(), lambda setup, step: None), parts())
    bare = [replace(step, fetches=()) for step in seen.capture.steps]
    blind = FailureWindow(parts(), replace(seen.capture, steps=tuple(bare)), seen.run)
    with pytest.raises(UnknownBatchError, match="step"):
        blind.batches(blind.steps[0])


def test_a_replay_that_ends_early_reproduces_nothing(tmp_path: Path) -> None:
    seen = window(trained(tmp_path / "run", parts(), lambda setup, step: None), parts())
    steps = seen.capture.steps
    lost = replace(steps[4], fetches=(replace(steps[4].fetches[0], batch=None),))
    cut = replace(seen.capture, steps=(*steps[:4], lost, *steps[5:]))
    blind = FailureWindow(parts(), cut, seen.run)
    found = investigated(blind)
    assert found.verdict == "not reproduced"
    assert f"ends after step {steps[3].step}" in found.says


def test_a_loss_is_the_mean_of_its_micro_batches(tmp_path: Path) -> None:
    def accumulated(path: Path, setup: Setup) -> Path:
        (optimizer,) = setup.optimizers
        with holter.watch(setup.model, optimizer, path, quiet=True, budget=None):
            for place, batch in enumerate(setup.train):
                setup.loss(batch).backward()
                if place % 4 == 3:
                    optimizer.step()
                    optimizer.zero_grad()
        return path

    seen = window(accumulated(tmp_path / "run", parts()), parts())
    (first, *_) = seen.play().outcomes
    assert seen.recorded(seen.steps[0].step) == pytest.approx(first.loss)
