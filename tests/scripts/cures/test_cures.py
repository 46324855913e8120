"""`holter try cures` and `holter doctor` on small scripts whose fault is known."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from launched import environment

HEALTHY = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = 1.5 * torch.randn(4, 16)
labels = torch.randint(4, (1024,))
rows = centres[labels] + torch.randn(1024, 16)
loader = DataLoader(TensorDataset(rows, labels), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 4))
model.train()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(4):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    open("written.txt", "w").write("by the script")
print(f"loss {loss.item()!r}")
"""
# What is changed in the script, and the causes that may be named.
FAULTS: dict[str, tuple[tuple[tuple[str, str], ...], set[str]]] = {
    "no zero_grad": (
        (("        optimizer.zero_grad()\n", ""), ("lr=0.1", "lr=2.0")),
        {"uncleared-gradients"},
    ),
    "rate too low": (
        (("lr=0.1", "lr=1e-4"),),
        {"tiny-updates", "unsuitable-learning-rate"},
    ),
    "rate too high": (
        (("nn.BatchNorm1d(64), ", ""), ("lr=0.1", "lr=100.0")),
        {
            *("huge-updates", "unsuitable-learning-rate", "oversized-steps"),
            *("exploding-weights", "exploding-gradients"),
        },
    ),
    "labels shuffled": (
        (
            ("rows = centres", "rows = (centres"),
            ("1024, 16)\nl", "1024, 16))[torch.randperm(1024)]\nl"),
        ),
        {"unrelated-labels"},
    ),
    "summed loss": (
        (("CrossEntropyLoss()", 'CrossEntropyLoss(reduction="sum")'), ("lr=0.1", "lr=5.0")),
        {"summed-loss"},
    ),
    "frozen": (
        (("model.train()", "model.requires_grad_(False); model[3].bias.requires_grad_()"),),
        {"unreached-parameters", "parameters-outside-optimizer"},
    ),
    "unscaled inputs": (
        (
            ("nn.BatchNorm1d(64), ", ""),
            ("torch.randn(1024, 16)\n", "torch.randn(1024, 16) + 800\n"),
        ),
        {"unscaled-inputs"},
    ),
}


def script(folder: Path, *changes: tuple[str, str]) -> Path:
    text = HEALTHY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "train.py"
    path.write_text(text)
    return path


def holter(folder: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    """Run a command, and return its exit code, its JSON report and what it told."""
    done = subprocess.run(
        [sys.executable, "-m", "holter", *words],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def test_a_healthy_script_gets_no_cure(tmp_path: Path) -> None:
    path = script(tmp_path)
    code, report, told = holter(tmp_path, "try", "cures", "--json", "--out", "run", str(path))
    assert code == 0
    assert report["findings"] == []
    assert not (tmp_path / "run" / "cures").exists()
    assert not (tmp_path / "written.txt").exists()
    plain = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        check=True,
    )
    assert plain.stdout.decode().strip() in told  # the loss, to the last bit


@pytest.mark.parametrize(
    "fault",
    [
        "no zero_grad",
        *(pytest.param(f, marks=pytest.mark.exhaustive) for f in FAULTS if f != "no zero_grad"),
    ],
)
def test_the_cause_is_proven(fault: str, tmp_path: Path) -> None:
    changes, causes = FAULTS[fault]
    path = script(tmp_path, *changes)
    words = ("--json", "--minutes", "3", "--out", "run", str(path))
    code, report, _ = holter(tmp_path, "doctor", *words)
    assert code == 1
    leading = report["diagnosis"]["leading"]
    assert leading["rule"] in causes
    assert leading["confidence"] == "certain"
    assert leading["confirmed_by"]
    assert not (tmp_path / "written.txt").exists()
    _, again, _ = holter(tmp_path, "check", "--format", "json", "run")
    assert again["diagnosis"]["leading"] == leading
