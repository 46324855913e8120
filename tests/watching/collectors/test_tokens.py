"""Tokens of a step, and memory at the end of its phases."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from holter import Run
from holter.record.signals import (
    INPUT_TOKENS,
    MEMORY_AFTER_BACKWARD,
    MEMORY_AFTER_FORWARD,
    MEMORY_AFTER_OPTIMIZER,
)
from watching.collectors.trainings import values, watching


class Language(nn.Module):
    """Tokens and positions, averaged."""

    def __init__(self, padding: int | None) -> None:
        super().__init__()
        self.places, self.words = nn.Embedding(6, 4), nn.Embedding(11, 4, padding_idx=padding)
        self.head = nn.Linear(4, 1)

    def forward(self, tokens: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        places = self.places(torch.arange(tokens.shape[1])[None])
        hidden = self.words(tokens) + places
        if attention_mask is not None:
            hidden = hidden * attention_mask[..., None]
        return self.head(hidden.mean(1)).square().mean()


class Columns(nn.Module):
    """A table with two columns of categories."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Embedding(11, 4), nn.Embedding(11, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, rows: Tensor) -> Tensor:
        hidden = self.first(rows[:, 0]) + self.second(rows[:, 1])
        return self.head(hidden).square().mean()


def recorded(path: Path, model: nn.Module, *, masked: bool = False, batches: int = 1) -> Run:
    tokens = torch.tensor([[1, 2, 3, 4, 0, 0], [5, 6, 0, 0, 0, 0]])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    given = {"attention_mask": (tokens != 0).long()} if masked else {}
    with watching(path, model, optimizer):
        for _ in range(3):
            optimizer.zero_grad()
            for _ in range(batches):
                model(tokens, **given).backward()
            with torch.no_grad():
                model(tokens)  # is not trained on
            optimizer.step()
    run = Run.load(path)
    assert run.meta.notes == ()
    return run


@pytest.mark.parametrize(
    ("padding", "masked", "expected"), [(None, False, 12), (0, False, 6), (None, True, 6)]
)
def test_padding_is_not_counted_where_it_is_known(
    tmp_path: Path, padding: int | None, masked: bool, expected: int
) -> None:
    run = recorded(tmp_path / "run", Language(padding), masked=masked, batches=2)
    assert values(run, INPUT_TOKENS, "") == [expected] * 3


def test_columns_of_a_table_are_no_tokens(tmp_path: Path) -> None:
    assert INPUT_TOKENS not in recorded(tmp_path / "run", Columns())


def test_memory_is_read_after_each_phase(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run", Language(None))
    for signal in (MEMORY_AFTER_FORWARD, MEMORY_AFTER_BACKWARD, MEMORY_AFTER_OPTIMIZER):
        read = values(run, signal, "")
        assert len(read) == 3
        assert min(read) > 2**20


@pytest.mark.cuda
def test_on_a_gpu_it_is_the_memory_in_tensors(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(64, 256, device="cuda")
    seen: dict[str, list[int]] = {"forward": [], "optimizer": []}
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(4):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            seen["forward"].append(torch.cuda.memory_allocated())
            loss.backward()
            optimizer.step()
            seen["optimizer"].append(torch.cuda.memory_allocated())
    run = Run.load(tmp_path / "run")
    for name, signal in (("forward", MEMORY_AFTER_FORWARD), ("optimizer", MEMORY_AFTER_OPTIMIZER)):
        for mine, theirs in zip(values(run, signal, ""), seen[name], strict=True):
            assert abs(mine - theirs) < 2**20
