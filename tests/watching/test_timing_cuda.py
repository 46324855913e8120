"""Time and memory on a GPU: events are read late, nothing waits, and reads are seen."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import holter
from holter.record.events import DeviceRead, MemoryExhausted
from holter.record.signals import (
    MEMORY_ALLOCATED,
    MEMORY_PEAK,
    MEMORY_RESERVED,
    MEMORY_RETRIES,
    SYNC_CALLS,
    TIME_BACKWARD,
    TIME_COPY,
    TIME_DEVICE_BACKWARD,
    TIME_DEVICE_FORWARD,
    TIME_DEVICE_IDLE,
    TIME_DEVICE_OPTIMIZER,
    TIME_STEP,
    TIME_SYNC,
)
from holter.watching.budget import Budget
from holter.watching.collectors.moments import Depth

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.filterwarnings("ignore:Synchronization debug mode"),
    pytest.mark.filterwarnings("ignore::UserWarning:torch"),
]


@pytest.fixture
def sampled(monkeypatch):
    """Read every fourth step whole, and the others lightly."""
    chosen = {True: Depth.FULL, False: Depth.LIGHT}
    monkeypatch.setattr(Budget, "depth", lambda _, step: chosen[step % 4 == 0])


def train(path: Path, *, steps: int = 64, width: int = 1024, reads: bool = False) -> holter.Run:
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(width, width) for _ in range(4))).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    batch = torch.randn(4096, width).pin_memory()
    with holter.watch(model, optimizer, path, quiet=True):
        for _ in range(steps):
            optimizer.zero_grad()
            loss = model(batch.to("cuda", non_blocking=True)).pow(2).mean()
            loss.backward()
            optimizer.step()
            if reads:
                loss.item()
    torch.cuda.synchronize()
    return holter.Run.load(path)


@pytest.mark.usefixtures("sampled")
def test_every_signal_of_a_gpu_is_written(tmp_path: Path) -> None:
    run = train(tmp_path / "run", reads=True)
    for signal in (
        *(TIME_DEVICE_FORWARD, TIME_DEVICE_BACKWARD, TIME_DEVICE_OPTIMIZER, TIME_DEVICE_IDLE),
        *(TIME_COPY, TIME_SYNC, SYNC_CALLS),
        *(MEMORY_ALLOCATED, MEMORY_RESERVED, MEMORY_PEAK, MEMORY_RETRIES),
    ):
        values = run[signal][""].values
        assert len(values), signal
        assert np.isfinite(values).all(), signal
        assert (values >= 0).all(), signal
    assert not [note for note in run.meta.notes if "failed" in note]


@pytest.mark.usefixtures("sampled")
def test_nothing_waits_for_the_device(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Linear(256, 256).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batch = torch.randn(64, 256, device="cuda")
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True, black_box=False):
        for step in range(64):
            if step == 16:  # by then kernels are compiled and tables are made
                torch.cuda.set_sync_debug_mode("error")
            optimizer.zero_grad()
            model(batch).pow(2).mean().backward()
            optimizer.step()
        torch.cuda.set_sync_debug_mode("default")
    run = holter.Run.load(tmp_path / "run")
    assert not [note for note in run.meta.notes if "failed" in note]
    assert len(run[TIME_DEVICE_BACKWARD][""])


@pytest.mark.usefixtures("sampled")
def test_the_clock_of_the_gpu_tells_more_than_that_of_the_host(tmp_path: Path) -> None:
    run = train(tmp_path / "run", steps=128, width=4096)
    host = float(np.median(run[TIME_BACKWARD][""].values))
    device = float(np.median(run[TIME_DEVICE_BACKWARD][""].values))
    assert device > host
    parts = (TIME_DEVICE_FORWARD, TIME_DEVICE_BACKWARD, TIME_DEVICE_OPTIMIZER)
    total = sum(float(np.median(run[signal][""].values)) for signal in parts)
    assert total > float(np.median(run[TIME_STEP][""].values)) / 2
    assert float(np.mean(run[TIME_DEVICE_IDLE][""].values)) < 0.5


@pytest.mark.usefixtures("sampled")
def test_reads_are_counted_with_their_line(tmp_path: Path) -> None:
    run = train(tmp_path / "run", reads=True)
    assert np.median(run[SYNC_CALLS][""].values) == 1
    (event,) = run.events_of(DeviceRead)
    assert event.what.call == "item"
    assert event.what.where.startswith("test_timing_cuda.py:")
    assert SYNC_CALLS in train(tmp_path / "other")
    assert not train(tmp_path / "third").events_of(DeviceRead)


def test_methods_of_tensors_are_put_back(tmp_path: Path) -> None:
    before = {name: getattr(torch.Tensor, name) for name in ("item", "cpu", "to", "cuda", "numpy")}
    train(tmp_path / "run", steps=4)
    assert {name: getattr(torch.Tensor, name) for name in before} == before


def test_running_out_of_memory_names_the_holders(tmp_path: Path) -> None:
    model = nn.Linear(1024, 1024).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    with (
        pytest.raises(torch.OutOfMemoryError),
        holter.watch(model, optimizer, tmp_path / "run", quiet=True),
    ):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(8, 1024, device="cuda")).pow(2).mean().backward()
            optimizer.step()
        large = torch.zeros(2**28, device="cuda")
        torch.zeros(2**42, device="cuda")
    assert len(large) == 2**28
    (event,) = holter.Run.load(tmp_path / "run").events_of(MemoryExhausted)
    assert event.what.device == "cuda"
    assert event.what.holders[0] == "large (test_timing_cuda.py)"
    assert event.what.sizes[0] == 4 * 2**28
    assert event.what.capacity
