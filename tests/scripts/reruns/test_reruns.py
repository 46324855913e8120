"""`holter try replay` on scripts whose step cannot be extracted: the whole script runs again."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

# A tensor in no module, updated by hand; a gradient of zero is divided by its norm.
BY_HAND = """
import torch

torch.manual_seed(0)
weight = torch.ones(3, requires_grad=True)
for step in range(60):
    x = torch.randn(8, 3) if step != 40 else torch.zeros(8, 3)
    loss = (x @ weight - x[:, 0]).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        weight -= 0.05 * weight.grad / weight.grad.norm()
    weight.grad = None
"""

# A loop fills a buffer over many steps, and one entry of it is infinite.
BUFFER = """
import math
import random

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)
memory = []


class World:
    def __init__(self):
        self.wealth = 1.0

    def step(self, day):
        lost = self.wealth * (1 + 0.1 * random.random())
        self.wealth = lost
        return [random.random(), random.random()], -math.inf if day == 70 else math.log(lost)


world, model = World(), nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)


def learn():
    states, rewards = zip(*memory[-4:])
    loss = (model(torch.tensor(states)).squeeze(1) - torch.tensor(rewards)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for day in range(100):
    memory.append(world.step(day))
    if day >= 20 and day % 4 == 0:
        learn()
        memory[-1] = (memory[-1][0], 0.0)
"""

# Rows of a table are divided by their norm after an epoch, and one row is zero.
EDITED = """
import torch
from torch import nn

torch.manual_seed(0)
table = nn.Embedding(6, 4, padding_idx=0)
optimizer = torch.optim.SGD(table.parameters(), lr=1e-2)


def normalise(weight):
    with torch.no_grad():
        weight.div_(weight.norm(dim=1, keepdim=True))


for step in range(50):
    if step == 40:
        normalise(table.weight)
    loss = (table(torch.randint(0, 6, (8,))) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

# A new optimizer begins with the step whose update is fatal: the capture begins after it.
LATE = """
import torch
from torch import nn

torch.manual_seed(0)
student, average, updates = nn.Linear(4, 2), nn.Linear(4, 2), 1
optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)


def follow():
    for own, other in zip(average.parameters(), student.parameters()):
        own.data = other.data / (1 - 0.9 ** updates)


for step in range(60):
    if step == 40:  # resumed without the count of updates
        optimizer, updates = torch.optim.Adam(student.parameters(), lr=1e-2), 0
        follow()
    x = torch.randn(8, 4)
    loss = (student(x) - average(x).detach()).pow(2).mean() + student(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    updates += 1
    follow()
"""

UNSEEDED = """
import torch
from torch import nn

torch.seed()
weight = torch.randn(3, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1e-2)
for step in range(50):
    loss = (torch.randn(8, 3) @ weight).pow(2).mean()
    if step == 40:
        loss = loss * torch.tensor(float("nan"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


# Rows are standardised in a worker of the loader, and all numbers of one row are the same.
WORKERS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self):
        self.rows = torch.randn(480, 6, generator=torch.Generator().manual_seed(1))
        self.rows[211] = 3.0

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        return (row - row.mean()) / row.std(), row[:1]


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    order = torch.Generator().manual_seed(0)
    loader = DataLoader(Rows(), batch_size=8, shuffle=True, num_workers=1, generator=order)
    for x, y in loader:
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

# An Adam written by hand counts the steps of each epoch, and the second epoch begins with 0.
COUNTER = """
import torch
from torch import nn

torch.manual_seed(0)
model, t = nn.Linear(4, 1), 1
x = torch.randn(320, 4)
moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in model.parameters()]


@torch.no_grad()
def update(t):
    for p, (m, v) in zip(model.parameters(), moments):
        m.mul_(0.9).add_(p.grad, alpha=0.1)
        v.mul_(0.99).addcmul_(p.grad, p.grad, value=0.01)
        first, second = torch.tensor(1 - 0.9**t), torch.tensor(1 - 0.99**t)
        p.sub_(1e-2 * (m / first) / ((v / second).sqrt() + 1e-8))
        p.grad = None


for epoch in range(2):
    for rows in torch.randperm(320).split(8):
        (model(x[rows]) - x[rows, :1]).square().mean().backward()
        update(t)
        t += 1
    t = 0
"""


def holter(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "holter", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def replayed(folder: Path, source: str, *options: str) -> dict[str, Any]:
    """Run a script and replay its failure; the JSON report."""
    (folder / "train.py").write_text(source)
    holter(folder, "run", "--no-check", "--out", "run", "train.py")
    ran = holter(folder, "try", "replay", "--json", *options, "run")
    assert ran.returncode in (0, 1), ran.stderr
    report: dict[str, Any] = json.loads(ran.stdout)
    return report


def test_an_update_by_hand_of_a_tensor_in_no_module(tmp_path: Path) -> None:
    report = replayed(tmp_path, BY_HAND)
    replay = report["replay"]
    assert replay["reproduction"]["verdict"] == "bit for bit"
    assert "whole script" in replay["reproduction"]["says"]
    assert replay["birth"]["line"] == "weight -= 0.05 * weight.grad / weight.grad.norm()"
    assert replay["birth"]["operation"] == "div"
    assert replay["smallest_cure"] == "guarded div"
    assert report["diagnosis"]["leading"]["rule"] == "nonfinite-birth"


def test_a_capture_that_begins_after_the_fatal_update(tmp_path: Path) -> None:
    report = replayed(tmp_path, LATE)
    replay = report["replay"]
    assert replay["reproduction"]["verdict"] == "bit for bit"
    assert "whole script" in replay["reproduction"]["says"]
    assert replay["birth"]["line"] == "own.data = other.data / (1 - 0.9 ** updates)"


@pytest.mark.exhaustive
def test_a_weight_that_the_script_spoils_between_steps(tmp_path: Path) -> None:
    report = replayed(tmp_path, EDITED)
    replay = report["replay"]
    assert replay["reproduction"]["verdict"] == "bit for bit"
    assert replay["birth"]["line"] == "weight.div_(weight.norm(dim=1, keepdim=True))"
    assert replay["birth"]["kind"] in ("zero by zero", "zero norm")
    assert replay["smallest_cure"] == "guarded div"
    assert report["diagnosis"]["leading"]["rule"] in ("damaging-weight-edits", "nonfinite-birth")


@pytest.mark.exhaustive
def test_a_buffer_that_a_loop_fills(tmp_path: Path) -> None:
    report = replayed(tmp_path, BUFFER, "--whole")
    replay = report["replay"]
    assert replay["reproduction"]["verdict"] == "bit for bit"
    assert replay["birth"]["kind"] == "bad input"
    assert replay["smallest_cure"] == "step skipped"
    assert not (tmp_path / "run" / "cures").exists()


def test_a_script_without_a_seed_concludes_nothing(tmp_path: Path) -> None:
    report = replayed(tmp_path, UNSEEDED, "--whole")
    reproduction = report["replay"]["reproduction"]
    assert reproduction["verdict"] == "not reproduced"
    assert "departs at step 0" in reproduction["says"] and "no seed" in reproduction["says"]
    assert report["replay"]["birth"] is None and report["replay"]["smallest_cure"] is None
    found = [each for each in report["findings"] if each["rule"] == "irreproducible-failure"]
    assert [each["confidence"] for each in found] == ["hint"]


def test_a_value_that_a_data_set_makes_in_a_worker(tmp_path: Path) -> None:
    report = replayed(tmp_path, WORKERS)
    birth = report["replay"]["birth"]
    assert birth["line"] == "return (row - row.mean()) / row.std(), row[:1]"
    assert birth["kind"] == "zero by zero"
    assert len(birth["samples"]) == 1
    assert report["replay"]["smallest_cure"] == "guarded div"
    assert report["diagnosis"]["leading"]["rule"] == "nonfinite-birth"


@pytest.mark.exhaustive
def test_a_counter_that_is_set_back(tmp_path: Path) -> None:
    report = replayed(tmp_path, COUNTER)
    replay = report["replay"]
    assert replay["birth"]["kind"] in ("zero by zero", "division by zero")
    assert replay["smallest_cure"] == "counter not set back t=40"
    assert report["diagnosis"]["leading"]["rule"] == "changed-settings"
