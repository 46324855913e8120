"""The range test on real small trainings: what it suggests, what it keeps, when it declines."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from holter import Run, check
from holter.diagnosis.facts.rate_range import RangeTest, read
from holter.lab import running
from holter.lab.setup import Setup
from holter.record.events import ExperimentFailed, LrRangeNote, NotApplicable
from holter.record.findings import Confidence, Finding, Verdict
from holter.record.signals import LR_RANGE_CONFIGURED, LR_RANGE_LOSS, LR_RANGE_RATE
from lab.experiments.trainings import HEALTHY, adam, loader, points

QUICK = {"points": 50, "repeats": 2, "confirm": 3, "steps": 40}


def tried(setup: Setup, folder: Path, **options: float) -> Run:
    made = running.run("lr-range", setup, folder / "run", **(QUICK | options))
    assert not made.events_of(ExperimentFailed)
    return made


def verdict(made: Run) -> Verdict:
    said = check(made, select=["unsuitable-learning-rate"])
    (only,) = (*said.findings, *said.clear, *said.not_examined)
    return only


def bowl(lr: float, *, momentum: float = 0.0) -> Setup:
    """A squared error of one layer: plain descent diverges from 2 / (largest eigenvalue) on."""
    torch.manual_seed(0)
    x = torch.randn(512, 10)
    y = x @ torch.randn(10, 1)
    model = nn.Linear(10, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
    return Setup.of(model, optimizer, nn.MSELoss(), loader(x, y, batch=64))


def edge_of_the_bowl() -> float:
    setup = bowl(0.1)
    x = torch.cat([each for each, _ in setup.train])
    x = torch.cat((x, torch.ones(len(x), 1)), 1)
    return float(2 / torch.linalg.eigvalsh(2 * x.T @ x / len(x)).max())


@pytest.mark.parametrize(
    "kind", ["mlp", "cnn", "regression", "hand_written_loss_of_dicts", "contrastive"]
)
def test_trainings_that_are_sound_are_clear(kind: str, tmp_path: Path) -> None:
    setup = HEALTHY[kind]()
    made = tried(setup, tmp_path)
    assert not isinstance(verdict(made), Finding)
    assert read(made).suggestion.low <= read(made).suggestion.rate <= read(made).suggestion.high


def test_the_edge_is_that_of_the_curvature(tmp_path: Path) -> None:
    test = read(tried(bowl(0.1), tmp_path))
    edge = edge_of_the_bowl()
    assert edge < test.diverges < 5 * edge  # a sweep needs some steps to come up again
    assert edge / 20 < test.suggestion.rate < edge
    assert test.suggestion.high < edge


@pytest.mark.parametrize(("of_edge", "wrong"), [(0.3, False), (4.0, True)])
def test_the_configured_rate_against_the_edge(of_edge: float, wrong: bool, tmp_path: Path) -> None:
    found = verdict(tried(bowl(of_edge * edge_of_the_bowl()), tmp_path))
    assert isinstance(found, Finding) is wrong
    if isinstance(found, Finding):
        assert found.confidence is Confidence.LIKELY


def test_a_rate_that_moves_nothing(tmp_path: Path) -> None:
    found = verdict(tried(bowl(1e-7), tmp_path))
    assert isinstance(found, Finding)
    assert found.confidence is Confidence.LIKELY


def test_groups_keep_their_ratios(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4), nn.Linear(4, 4))
    groups = [
        {"params": model[0].parameters(), "lr": 0.0},  # frozen
        {"params": model[2].parameters(), "lr": 1e-4},
        {"params": model[3].parameters(), "lr": 2e-3},
    ]
    optimizer = torch.optim.Adam(groups)
    seen = []
    optimizer.register_step_pre_hook(
        lambda *_: seen.append([each["lr"] for each in optimizer.param_groups])
    )
    made = tried(Setup.of(model, optimizer, nn.CrossEntropyLoss(), loader(*points())), tmp_path)
    rates = np.array(seen)
    np.testing.assert_allclose(rates[:, 2] / rates[:, 1], 20)
    assert (rates[:, 0] == 0).all()
    np.testing.assert_allclose(rates[: len(made[LR_RANGE_RATE]["sweep 0"]), 1][0], 1e-7)
    assert [each["lr"] for each in optimizer.param_groups] == [0.0, 1e-4, 2e-3]


def test_each_sweep_begins_alike_and_sees_other_batches(tmp_path: Path) -> None:
    made = tried(bowl(0.1), tmp_path, repeats=3)
    losses = [made[LR_RANGE_LOSS][f"sweep {number}"].values for number in range(3)]
    held = [each.held[0] for each in read(made).sweeps]
    np.testing.assert_allclose(held, held[0], rtol=1e-3)
    assert len({float(each[0]) for each in losses}) == 3


def test_steps_that_the_scaler_skips_are_left_out(tmp_path: Path) -> None:
    setup = bowl(0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=10)
    phase = replace(setup.phases[0], scaler=scaler)
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    setup.optimizers[0].register_step_pre_hook(count)
    setup = replace(setup, phases=(phase,))
    made = tried(setup, tmp_path, confirm=0)
    points_of_sweeps = sum(len(each) for each in made[LR_RANGE_RATE].values())
    assert calls == points_of_sweeps
    assert all(np.isfinite(each.values[:-5]).all() for each in made[LR_RANGE_LOSS].values())
    assert 0 < read(made).suggestion.rate < edge_of_the_bowl()


def test_accumulation_takes_as_many_batches(tmp_path: Path) -> None:
    taken = 0
    batches = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(16)]

    class Counted:
        def __iter__(self):
            nonlocal taken
            for batch in batches:
                taken += 1
                yield batch

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    setup = replace(Setup.of(model, optimizer, nn.MSELoss(), Counted()), accumulation=4)
    made = tried(setup, tmp_path, confirm=0)
    steps = sum(len(each) for each in made[LR_RANGE_RATE].values())
    assert taken >= 4 * steps


@pytest.mark.parametrize(
    ("scheduler", "peak"),
    [
        (lambda o: torch.optim.lr_scheduler.OneCycleLR(o, max_lr=0.2, total_steps=100), 0.2),
        (lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda step: step / 100), 0.05),
        (lambda o: torch.optim.lr_scheduler.CyclicLR(o, 1e-3, 0.3), 0.3),
        (lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 10), 0.05),
    ],
)
def test_the_peak_of_a_schedule_is_what_is_configured(
    scheduler: object, peak: float, tmp_path: Path
) -> None:
    setup = bowl(0.05, momentum=0.9)
    setup = replace(setup, schedulers=(scheduler(setup.optimizers[0]),))
    made = tried(setup, tmp_path)
    assert made[LR_RANGE_CONFIGURED]["peak"].values[-1] == pytest.approx(peak)
    assert read(made).trial_at(peak) is not None


def stuck(model: nn.Module, batch: list[Tensor]) -> Tensor:
    return (0 * model(batch[0])).sum() + 1.0


def without_relation(model: nn.Module, batch: list[Tensor]) -> Tensor:
    """Nothing in the inputs tells of the target, and the bias is at its best."""
    return functional.mse_loss(model(0 * batch[0]), batch[1])


@pytest.mark.parametrize(("loss", "word"), [(stuck, "no weight"), (without_relation, "noise")])
def test_a_curve_that_says_nothing(loss: object, word: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    x, y = torch.randn(512, 4), torch.randn(512, 1)
    y = y - y.mean()
    model = nn.Linear(4, 1)
    nn.init.zeros_(model.bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    test: RangeTest = read(tried(Setup.of(model, optimizer, loss, loader(x, y)), tmp_path))
    assert word in test.problem


@pytest.mark.parametrize("kind", ["gan", "with_nan_at_once"])
def test_declines(kind: str, tmp_path: Path) -> None:
    made = tried(HEALTHY[kind](), tmp_path)
    assert len(made.events_of(NotApplicable)) == 1
    assert LR_RANGE_RATE not in made


def test_says_that_data_are_sorted(tmp_path: Path) -> None:
    x, y = points(512)
    order = y.argsort()
    model = nn.Linear(8, 4)
    data = DataLoader(TensorDataset(x[order], y[order]), batch_size=64)
    made = tried(Setup.of(model, adam(model), nn.CrossEntropyLoss(), data), tmp_path, confirm=0)
    notes = [event.what.note for event in made.events_of(LrRangeNote)]
    assert len(notes) == 2  # not shuffled, and 8 batches
    one_class = DataLoader(TensorDataset(x[order], y[order]), batch_size=16)
    setup = Setup.of(model, adam(model), nn.CrossEntropyLoss(), one_class)
    made = tried(setup, tmp_path / "2", confirm=0)
    notes = [event.what.note for event in made.events_of(LrRangeNote)]
    assert any("single class" in note for note in notes)


def test_a_loss_that_needs_gradients_itself(tmp_path: Path) -> None:
    def penalised(model: nn.Module, batch: list[Tensor]) -> Tensor:
        x = batch[0].requires_grad_()
        out = model(x)
        (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        return functional.mse_loss(out, batch[1]) + 0.01 * slope.square().mean()

    x = torch.randn(256, 4)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
    setup = Setup.of(model, adam(model), penalised, loader(x, x.sum(1, keepdim=True)))
    assert read(tried(setup, tmp_path)).problem == ""
