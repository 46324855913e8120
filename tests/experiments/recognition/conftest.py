"""Recognises scripts in this process: afterwards they are unwound, and all is as before."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holter.experiments.recognition import Recognised, recognise
from holter.experiments.recognition.leaving import unwind

HEAD = """\
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, Y = torch.randn(192, 6), torch.randint(3, (192,))
train_loader = DataLoader(TensorDataset(X[:128], Y[:128]), batch_size=16, shuffle=True)
valid_loader = DataLoader(TensorDataset(X[128:], Y[128:]), batch_size=32)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
"""
HEAD_LINES = HEAD.count("\n")

Recognise = Callable[..., Any]


@pytest.fixture
def recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recognise:
    """Run a script (behind the usual beginning) and return what is recognised in it.

    With `look`, what that makes of it while the script is paused.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])

    def run(
        source: str,
        *,
        steps: int = 6,
        seconds: float = 60.0,
        head: str = HEAD,
        look: Callable[[Recognised], Any] | None = None,
    ) -> Any:
        script = tmp_path / "train.py"
        script.write_text(head + source)
        found: list[Any] = []

        def then(one: Recognised) -> int:
            found.append(one if look is None else look(one))
            return 0

        recognise("train.py", steps=steps, seconds=seconds, then=then, leave=unwind)
        return found[0]

    return run
