"""What held memory when an allocation failed."""

import pytest
import torch
from torch import nn

import holter
from holter.record.events import MemoryExhausted


def test_the_line_the_size_and_the_holders_are_recorded(tmp_path):
    model = nn.Linear(100, 100)
    optimizer = torch.optim.Adam(model.parameters())

    def distances(bank):
        return (bank[:, None] - bank[None]).pow(2)

    with (
        pytest.raises(RuntimeError, match="allocate"),
        holter.watch(model, optimizer, tmp_path / "run", quiet=True),
    ):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(4, 100)).pow(2).mean().backward()
            optimizer.step()
        history = [torch.zeros(1000) for _ in range(100)]
        distances(torch.zeros(3_000_000, 8))
    assert history
    (event,) = holter.Run.load(tmp_path / "run").events_of(MemoryExhausted)
    what = event.what
    held = dict(zip(what.holders, what.sizes, strict=True))
    assert (what.device, event.step) == ("cpu", 3)
    assert what.requested == 3_000_000**2 * 8 * 4
    assert what.where.startswith("test_exhaustion.py:")
    assert what.holders[0] == "bank (test_exhaustion.py)"
    assert held["bank (test_exhaustion.py)"] == 3_000_000 * 8 * 4
    assert held["history (test_exhaustion.py)"] == 400_000
    assert held["parameters"] == 4 * 10_100
    assert held["gradients"] == 4 * 10_100
    assert held["optimizer state"] >= 8 * 10_100


def test_another_exception_is_none_of_it(tmp_path):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with (
        pytest.raises(RuntimeError, match="shapes"),
        holter.watch(model, optimizer, tmp_path / "run", quiet=True),
    ):
        raise RuntimeError("shapes do not match")
    assert holter.Run.load(tmp_path / "run").events_of(MemoryExhausted) == []
