"""Throughput: a slow loader is told from a fast one, by sleeps of known length."""

import time
from itertools import islice
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from holter import check
from holter.lab.experiments._throughput.loading import time_of_batch, with_workers
from holter.lab.experiments._throughput.profiling import reads
from holter.lab.running import run
from holter.lab.setup import Setup
from holter.record.events import ExperimentFailed
from holter.record.signals import (
    THROUGHPUT_BATCH_TIME,
    THROUGHPUT_FLOPS,
    THROUGHPUT_LOADING,
    THROUGHPUT_OPERATOR_TIME,
    THROUGHPUT_STEP_TIME,
    THROUGHPUT_WAIT,
)
from holter.reports import text
from holter.reports.experiments import all_results

NAP = 2e-3  # seconds for a sample
BATCH = 8


class Slow(Dataset):
    def __init__(self, count: int = 400, nap: float = NAP) -> None:
        self.count, self.nap = count, nap

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        time.sleep(self.nap)
        return torch.full((4,), float(index)), torch.tensor(index % 2)


class Stream(IterableDataset):
    def __iter__(self):
        return iter(torch.arange(100.0).reshape(25, 4))


def setup(data: Dataset) -> Setup:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    loader = DataLoader(data, BATCH, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return Setup.of(model, optimizer, nn.CrossEntropyLoss(), loader)


def median(made, signal, trial: str) -> float:
    return float(made[signal][trial].values.astype(float).mean())


def test_a_slow_loader(tmp_path: Path) -> None:
    made = run("throughput", setup(Slow()), tmp_path / "run", steps=8)
    assert not made.events_of(ExperimentFailed)
    waits = median(made, THROUGHPUT_WAIT, "loader")
    assert BATCH * NAP <= waits < 4 * BATCH * NAP
    loaded, cached = (median(made, THROUGHPUT_STEP_TIME, name) for name in ("loader", "cached"))
    assert loaded > waits > cached
    alone = {int(name): median(made, THROUGHPUT_LOADING, name) for name in made[THROUGHPUT_LOADING]}
    assert alone[0] >= BATCH * NAP
    if 2 in alone:
        assert alone[2] < 0.9 * alone[0]
    assert {"4", "8", "16", "32"} == set(made[THROUGHPUT_BATCH_TIME])
    # Two layers, forward and backward, without the gradient of the inputs: 2 * 8 * (2*64 + 3*32).
    assert median(made, THROUGHPUT_FLOPS, "step") == 2 * BATCH * (2 * 64 + 3 * 32)
    assert len(made[THROUGHPUT_OPERATOR_TIME]) == 8
    shown = text.render(made, check(made))
    assert "times as fast" in shown
    assert {table.title for table in all_results(made)} >= {"time of a training step"}


def test_a_loader_that_keeps_up(tmp_path: Path) -> None:
    data = TensorDataset(torch.randn(64, 4), torch.randint(2, (64,)))
    made = run("throughput", setup(data), tmp_path / "run", steps=8, profile=False)
    assert set(made[THROUGHPUT_LOADING]) <= {"0", "1", "2", "4", "8", "16"}
    assert THROUGHPUT_FLOPS not in made


@pytest.mark.parametrize("batch_size", [4, None])
def test_another_number_of_workers_gives_the_same_batches(batch_size: int | None) -> None:
    data = TensorDataset(torch.arange(32.0))
    loader = DataLoader(data, batch_size)
    other = list(with_workers(loader, 1))
    for (ours,), (theirs,) in zip(other, loader, strict=True):
        assert torch.equal(ours, theirs)
    assert with_workers(loader, 1).num_workers == 1


def test_a_stream_can_be_timed() -> None:
    loader = DataLoader(Stream(), 5)
    assert time_of_batch(with_workers(loader, 0), 3, 1.0) is not None
    assert time_of_batch(DataLoader(TensorDataset(torch.zeros(2)), 2), 3, 1.0) is None


def test_reads_on_the_host_have_their_line() -> None:
    def step() -> None:
        loss = torch.ones(3).sum()
        for _ in islice(range(5), 2):
            loss.item()
        float(loss)

    counts = reads(step)
    assert sorted(counts.values()) == [1, 2]
    assert all("test_throughput.py:" in name for name in counts)
