"""The black box on a GPU: it waits for nothing, and what it keeps is what was."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import holter
from holter.record.events import HolterFailed
from holter.watching.blackbox.capture import captures_in, load_capture

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.filterwarnings("ignore:Synchronization debug mode"),
    pytest.mark.filterwarnings("ignore::UserWarning:torch"),
]


def train(
    path: Path, *, steps: int, bad_at: int | None, sync: str = "default"
) -> list[torch.Tensor]:
    """The first weight before each step."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.Dropout(0.1), nn.Linear(64, 4))
    model = model.cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = torch.randn(16 * steps, 32), torch.randint(4, (16 * steps,))
    if bad_at is not None:
        x[16 * bad_at + 3] = torch.inf
    loader = DataLoader(TensorDataset(x, y), 16, pin_memory=True)
    weights = []
    with holter.watch(model, optimizer, path, quiet=True):
        for number, (a, b) in enumerate(loader):
            if number == 40:
                torch.cuda.synchronize()
                torch.cuda.set_sync_debug_mode(sync)
            weights.append(model[0].weight.detach().clone())
            loss = nn.functional.cross_entropy(
                model(a.cuda(non_blocking=True)), b.cuda(non_blocking=True)
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.cuda.set_sync_debug_mode("default")
    return weights


def test_it_never_waits_for_the_device(tmp_path: Path) -> None:
    train(tmp_path / "run", steps=120, bad_at=None, sync="error")
    run = holter.Run.load(tmp_path / "run")
    assert not run.events_of(HolterFailed)


def test_what_is_captured_is_what_was(tmp_path: Path) -> None:
    weights = train(tmp_path / "run", steps=400, bad_at=333)
    (folder,) = captures_in(tmp_path / "run")
    capture = load_capture(folder)
    assert 333 <= capture.alarm.step < 333 + 16  # losses of short steps are not read at each
    first = capture.steps[0].step
    assert first <= 333
    kept = capture.state["model/Sequential/0.weight"]
    assert torch.equal(kept, weights[first].cpu())
    failing = next(step for step in capture.steps if step.step == 333)
    assert failing.fetches[0].batch[0].isinf().any()
    assert failing.fetches[0].random_cuda is not None


def test_weights_are_the_same_with_and_without(tmp_path: Path) -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        ours = train(tmp_path / "a", steps=60, bad_at=None)[-1]
        theirs = train(tmp_path / "b", steps=60, bad_at=None)[-1]
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(ours, theirs)
