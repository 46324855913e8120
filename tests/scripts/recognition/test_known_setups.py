"""Where the step of a script cannot be extracted, something alive in it may know the setup."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TRAINING = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import holter
from holter.lab.setup import KnowsSetup
torch.manual_seed(0)
rows = torch.randn(64, 4)
loader = DataLoader(TensorDataset(rows, (rows[:, 0] > 0).long()), 16)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
class Knows(KnowsSetup):
    def training_setup(self):
        return holter.Setup.of(model, optimizer, criterion, loader)
knows = Knows()
x, y = next(iter(loader))
criterion(model(x), y).backward()  # once: a step is extracted from two
optimizer.step()
"""


@pytest.mark.slow
def test_a_setup_that_is_known_is_used(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    words = ("try", "preflight", "--only", "samples", "--json", "train.py")
    done = subprocess.run(
        [sys.executable, "-m", "holter", *words],
        cwd=tmp_path,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Knows gives the setup" in done.stderr
    states = {check["check"]: check["status"] for check in json.loads(done.stdout)["checklist"]}
    assert states["samples"] == "PASS"
