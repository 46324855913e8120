"""Inputs of linear layers that concatenate data with features."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import holter
from holter import Run
from holter.record.signals import INPUT_JOINED_RATIO, INPUT_JOINED_STD


class Towers(nn.Module):
    """A model that is called by a method of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 6)
        self.first = nn.Linear(7, 4)
        self.last = nn.Linear(4, 1)

    def encode(self, ids: Tensor, number: Tensor) -> Tensor:
        joined = torch.cat([self.embedding(ids), number[:, None]], 1)
        return self.last(self.first(joined).relu())


def recorded(path: Path, scale: float) -> Run:
    torch.manual_seed(0)
    model = Towers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with holter.watch(model, optimizer, path, quiet=True):
        for _ in range(6):
            ids, number = torch.arange(20), scale * torch.linspace(-1, 1, 20)
            optimizer.zero_grad()
            model.encode(ids, number).square().mean().backward()
            optimizer.step()
    return Run.load(path)


def test_the_largest_column_beside_the_median_one(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run", 500.0)
    torch.manual_seed(0)
    columns = torch.cat([Towers().embedding.weight, 500 * torch.linspace(-1, 1, 20)[:, None]], 1)
    spread = columns.detach().std(0)
    assert list(run[INPUT_JOINED_STD]) == ["first"]  # what `last` is given is no data
    largest = run[INPUT_JOINED_STD]["first"].values
    assert largest.tolist() == pytest.approx([float(spread.max())] * len(largest), rel=1e-5)
    ratio = run[INPUT_JOINED_RATIO]["first"].values
    assert ratio.tolist() == pytest.approx([float(spread.max() / spread.median())] * len(ratio))
