"""Reshapes that exchange dimensions, as the script calls them in the forward of a few steps."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import holter
from holter import Run
from holter.record.events import AxisMoved
from holter.record.signals import RESHAPE_MOVED
from holter.watching.collectors.reshapes import moved


@pytest.mark.parametrize(
    ("before", "after", "size"),
    [
        ((32, 48, 6), (32, 6, 48), 48),
        ((8, 4, 16, 20), (8 * 16 * 20, 4), 4),  # classes are not moved to the end
        ((32, 48, 6), (48, 32, 6), 48),
        ((32, 48, 6), (32 * 48, 6), None),
        ((32, 48, 6), (32, 48 * 6), None),
        ((32, 48, 64), (32, 48, 8, 8), None),
        ((32, 48, 24), (32, 24, 48), 24),
        ((32, 12, 12), (32, 12, 12), None),
        ((32, 2, 50), (32, 50, 2), 50),
        ((640, 10), (64, 10, 10), None),  # which of both it is cannot be told
    ],
)
def test_a_dimension_that_keeps_its_size_keeps_its_elements(
    before: tuple[int, ...], after: tuple[int, ...], size: int | None
) -> None:
    assert (moved(before, after) is None) == (size is None)


def recorded(path: Path, change: Callable[[Tensor], Tensor]) -> Run:
    torch.manual_seed(0)
    model = nn.Conv1d(6, 4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with holter.watch(model, optimizer, path, quiet=True):
        for _ in range(8):
            loss = model(change(torch.randn(5, 20, 6))).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return Run.load(path)


def test_the_line_is_told(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run", lambda x: x.reshape(5, 6, 20))
    (told,) = run.events_of(AxisMoved)
    assert told.what.before == (5, 20, 6)
    assert told.what.after == (5, 6, 20)
    assert told.what.where.startswith("test_reshapes.py:")
    assert all(run[RESHAPE_MOVED][""].values == 1)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.transpose(1, 2),
        lambda x: x.reshape(100, 6).view(5, 20, 6).permute(0, 2, 1),
        lambda x: torch.reshape(x, (5, 20, 6)).movedim(1, 2),
    ],
)
def test_what_is_right_is_not(tmp_path: Path, change: Callable[[Tensor], Tensor]) -> None:
    run = recorded(tmp_path / "run", change)
    assert not run.events_of(AxisMoved)
    assert not run[RESHAPE_MOVED][""].values.any()


def test_methods_are_as_they_were(tmp_path: Path) -> None:
    before = Tensor.view, Tensor.reshape, torch.reshape
    recorded(tmp_path / "run", lambda x: x.transpose(1, 2))
    assert (Tensor.view, Tensor.reshape, torch.reshape) == before
    assert "view" not in vars(Tensor)
