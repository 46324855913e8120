import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from holter import Run, check
from holter.lab.experiments._geometry import noise
from holter.lab.experiments._geometry.memory import largest_by_trying
from holter.lab.experiments._geometry.noise import noise_scale, sketch
from holter.lab.running import run
from holter.lab.setup import Setup
from holter.lab.state import State
from holter.record.events import NotApplicable
from holter.record.signals import BATCH_LARGEST, BATCH_NOISE_SCALE, BATCH_SIZE
from lab.experiments.trainings import HEALTHY

FEATURES = 20


def linear(*, sigma: float, distance: float, samples: int, batch: int, seed: int = 0) -> Setup:
    """A regression at a known distance from its optimum."""
    torch.manual_seed(seed)
    model = nn.Linear(FEATURES, 1, bias=False)
    x = torch.randn(samples, FEATURES)
    way = torch.randn(1, FEATURES)
    with torch.no_grad():
        model.weight.copy_(distance * way / way.norm())
    train = DataLoader(TensorDataset(x, sigma * torch.randn(samples, 1)), batch, shuffle=True)
    return Setup.of(model, torch.optim.SGD(model.parameters(), 1e-3), nn.MSELoss(), train)


def true_scale(sigma: float, distance: float) -> float:
    """Of gradients 2 (x d - e) x with x and e normal."""
    return FEATURES + 1 + FEATURES * sigma**2 / distance**2


def measured(setup: Setup, folder: Path, **options: object) -> Run:
    before = State(setup).digest
    made = run("batch-size", setup, folder, **options)
    assert State(setup).digest == before
    return made


def scales(made: Run) -> dict[str, list[float]]:
    return {trial: each.values.tolist() for trial, each in made[BATCH_NOISE_SCALE].items()}


@pytest.mark.parametrize(("sigma", "distance"), [(0.0, 1.0), (0.5, 1.0), (2.0, 0.5)])
def test_the_noise_scale_of_a_known_regression(
    sigma: float, distance: float, tmp_path: Path
) -> None:
    setup = linear(sigma=sigma, distance=distance, samples=8192, batch=64)
    found = scales(measured(setup, tmp_path / "run", steps=0, memory=False))
    (value,), (lower,), (upper,) = (found[each] for each in ("estimate", "lower", "upper"))
    assert value == pytest.approx(true_scale(sigma, distance), rel=0.35)
    assert 0.5 * lower < true_scale(sigma, distance) < 2 * upper
    assert lower < value < upper < 4 * lower


def test_estimates_are_not_biased_and_intervals_hold_the_truth() -> None:
    random = np.random.default_rng(0)
    truth, samples, ratios, held = 200.0, 16, [], 0
    for _ in range(100):  # a gradient of (1, 0, ...), and noise of 200 in all
        rows = math.sqrt(truth / 50 / samples) * random.standard_normal((48, 50))
        rows[:, 0] += 1
        found = noise_scale(rows @ rows.T, samples, population=None)
        ratios.append(truth / found.value)
        held += found.lower <= truth <= found.upper
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.05)
    assert held >= 85


def test_batches_of_a_whole_epoch_know_its_gradient_exactly() -> None:
    random = np.random.default_rng(0)
    gradients = random.standard_normal((256, 30)) + 0.1
    mean, spread = gradients.mean(0), gradients.var(0, ddof=1).sum()
    ratios = []
    for _ in range(50):
        rows = random.permutation(gradients).reshape(16, 16, 30).mean(1)
        found = noise_scale(rows @ rows.T, 16, population=256)
        ratios.append(found.value / (spread / (mean @ mean)))
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.05)


def test_long_gradients_are_folded_and_keep_their_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "WIDTH", 4096)
    torch.manual_seed(0)
    one = [torch.randn(300, 100), torch.randn(500)]
    other = [each + torch.randn_like(each) for each in one]
    exact = sum(float((a * b).sum()) for a, b in zip(one, other, strict=True))
    first, second = sketch(one), sketch(other)
    assert len(first) == 4096
    assert float(first @ second) == pytest.approx(exact, rel=0.1)
    assert torch.equal(first, sketch(one))


def test_the_size_counts_accumulation_and_what_the_loader_knows(tmp_path: Path) -> None:
    setup = replace(linear(sigma=1.0, distance=1.0, samples=512, batch=32), accumulation=4)
    made = measured(setup, tmp_path / "run", steps=2)
    assert made[BATCH_SIZE][""].values.tolist() == [128.0]
    assert made[BATCH_NOISE_SCALE]["estimate"].steps.tolist() == [0, 2]
    time_first = HEALTHY["lstm_with_time_first"]()
    made = measured(time_first, tmp_path / "time", steps=0, batches=8)
    assert made[BATCH_SIZE][""].values.tolist() == [16.0]
    assert BATCH_LARGEST not in made


def test_few_batches_are_split(tmp_path: Path) -> None:
    setup = linear(sigma=0.5, distance=1.0, samples=512, batch=256)
    found = scales(measured(setup, tmp_path / "run", steps=0, memory=False))
    assert found["estimate"][0] == pytest.approx(true_scale(0.5, 1.0), rel=0.5)


def test_only_one_epoch_is_compared(tmp_path: Path) -> None:
    setup = linear(sigma=0.5, distance=1.0, samples=512, batch=128)
    once = scales(measured(setup, tmp_path / "once", steps=0, memory=False))
    captured = replace(setup, train=[batch for _ in range(5) for batch in setup.batches(4)])
    again = scales(measured(captured, tmp_path / "again", steps=0, memory=False))
    assert again["estimate"][0] == pytest.approx(once["estimate"][0], rel=0.3)
    assert again["upper"][0] > 1.2 * again["lower"][0]  # of eight gradients, not of forty


def test_what_cannot_be_split_is_declined(tmp_path: Path) -> None:
    made = measured(HEALTHY["graph"](), tmp_path / "run")
    (event,) = made.events_of(NotApplicable)
    assert "too few gradients" in event.what.why


@pytest.mark.parametrize("kind", ["mlp", "cnn", "lstm", "language_model", "gan", "in_bfloat16"])
def test_says_nothing_of_healthy_trainings(kind: str, tmp_path: Path) -> None:
    made = measured(HEALTHY[kind](), tmp_path / "run", steps=10, batches=16)
    checkup = check(made, select=["inefficient-batch-size"])
    assert checkup.findings == ()


def test_a_huge_batch_is_found(tmp_path: Path) -> None:
    setup = linear(sigma=0.0, distance=1.0, samples=8192, batch=1024)
    made = measured(setup, tmp_path / "run", steps=5, memory=False)
    (finding,) = check(made, select=["inefficient-batch-size"]).findings
    assert "1024" in finding.summary


def test_memory_is_estimated_from_what_a_sample_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holter.lab.experiments._geometry.memory._free", lambda: 10 << 20)
    x = torch.randn(64, 256)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(256, 256), nn.Tanh()) for _ in range(4)))

    def loss(model: nn.Module, batch: list[Tensor]) -> Tensor:
        return model(batch[0]).square().mean()

    train = DataLoader(TensorDataset(x), 8)
    setup = Setup.of(model, torch.optim.SGD(model.parameters(), 1e-3), loss, train)
    made = measured(setup, tmp_path / "run", steps=0)
    kept = 4 * 256 * 5  # bytes that a sample leaves in the graph: the input and four outputs
    fits = made[BATCH_LARGEST]["estimated"].values[0]
    assert fits == pytest.approx(0.7 * (10 << 20) / (2 * kept), rel=0.3)


@pytest.mark.cuda
def test_memory_is_tried_on_a_gpu() -> None:
    device = torch.device("cuda")
    model = nn.Sequential(nn.Linear(1024, 4096), nn.Tanh(), nn.Linear(4096, 1024)).to(device)
    x = torch.randn(256, 1024)
    train = DataLoader(TensorDataset(x, x), 128)
    setup = Setup.of(model, torch.optim.SGD(model.parameters(), 1e-3), nn.MSELoss(), train)
    assert largest_by_trying(setup, setup.batches(1)[0], 2) == {"at least": 512}
    total = torch.cuda.get_device_properties(device).total_memory
    before = torch.cuda.memory_allocated()
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction((before + (512 << 20)) / total)
    try:
        found = largest_by_trying(setup, setup.batches(1)[0], 12)
        assert torch.cuda.memory_allocated() - before < 200 << 20
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert set(found) == {"tried"}
    assert 1024 <= found["tried"] <= 32768


def test_losses_without_a_gradient(tmp_path: Path) -> None:
    made = measured(HEALTHY["with_nan_at_once"](), tmp_path / "run")
    (event,) = made.events_of(NotApplicable)
    assert "not finite" in event.what.why
