"""Experiments on a real Ray cluster of two nodes, as a user starts them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holter.record import Run
from holter.record.events import ChangeTried, CureTried
from holter.record.signals import LR_RANGE_HELD

pytest.importorskip("ray")

TRAINING = """\
import os, pathlib, signal, sys
if {lost!r} and not pathlib.Path({lost!r}).exists():
    pathlib.Path({lost!r}).touch()
    os.kill(os.getppid(), signal.SIGKILL)  # the worker of the cluster
    os.kill(os.getpid(), signal.SIGKILL)
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(5)
x = torch.rand(256, 4) + 0.1
y = x @ torch.randn(4, 1)
x[{bad}] = {value}
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=float(sys.argv[1]))
for _ in range(3):
    for a, b in DataLoader(TensorDataset(x, y), 16, shuffle=True):
        optimizer.zero_grad()
        loss = ((model(torch.log(a)) - b) ** 2).mean()
        loss.backward()
        optimizer.step()
"""


CURABLE = """\
import os, pathlib, signal
lost = pathlib.Path({lost!r})
if "RAY_RAYLET_PID" in os.environ and not lost.exists():
    lost.touch()
    os.kill(os.getppid(), signal.SIGKILL)  # the worker of the cluster
    os.kill(os.getpid(), signal.SIGKILL)
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
labels = torch.randint(4, (1024,))
rows = (1.5 * torch.randn(4, 16))[labels] + torch.randn(1024, 16)
model = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
for epoch in range(4):
    for x, y in DataLoader(TensorDataset(rows, labels), batch_size=32, shuffle=True):
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
"""
# What `holter try cures --on ray` does with trials, without the search for them.
TRIALS = """\
import math, pathlib, sys
from holter.lab.cures.searching import CureTrial
from holter.scripts.cures.bench import ScriptBench
from holter.scripts.cures.elsewhere import HandedOutBench
from holter.scripts.cures.trial import Command
from holter.scripts.sweeps.cluster import RayWorkers

command, run = Command("train.py"), pathlib.Path("run").absolute()
workers = RayWorkers(run, address=None, cpus=1.0, gpus=0.0)
with ScriptBench(command, run) as here, workers:
    bench = HandedOutBench(here, command, run, workers)
    trials = [CureTrial("unchanged", 1, 20), CureTrial("learning rate x 0.1", 0, 20)]
    done = sorted(bench.run(trials, math.inf), key=lambda each: each.repeat)
print(bench.jobs, *(each.failed or each.altered > 0 for each in done))
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    from ray.cluster_utils import Cluster

    made: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        made.add_node(num_cpus=1)
        yield made.address
    finally:
        made.shutdown()


def write(folder: Path, *, lost: Path | str = "", value: float = 1.0) -> None:
    text = TRAINING.format(lost=str(lost), bad=77, value=value)
    (folder / "train.py").write_text(text)


def holter(folder: Path, address: str, *words: str) -> subprocess.CompletedProcess[str]:
    return python(folder, address, "-m", "holter", *words)


def python(folder: Path, address: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "RAY_ADDRESS": address},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


@pytest.mark.slow
def test_seeds_come_back_and_a_lost_one_is_retried(cluster: str, tmp_path: Path) -> None:
    lost = tmp_path / "lost"
    write(tmp_path, lost=lost)
    words = ["seeds", "--n", "2", "--on", "ray", "--out", "sweep", "--json"]
    ended = holter(tmp_path, cluster, *words, "--", "python", "train.py", "0.1")
    assert ended.returncode == 0, ended.stderr
    values = [each["value"] for each in json.loads(ended.stdout)["variants"][0]["values"]]
    assert len(set(values)) == 2
    assert lost.exists()
    assert Run.load(tmp_path / "sweep/A/seed-1").steps == 48


@pytest.mark.exhaustive
def test_trials_come_back_and_a_lost_one_is_retried(cluster: str, tmp_path: Path) -> None:
    lost = tmp_path.parent / f"{tmp_path.name}-lost"  # what a trial writes beside it is deleted
    (tmp_path / "train.py").write_text(CURABLE.format(lost=str(lost)))
    ended = python(tmp_path, cluster, "-c", TRIALS)
    assert ended.stdout.split() == ["2", "True", "False"], ended.stderr  # nodes, altered
    assert lost.exists()


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_cure_is_found_though_a_worker_is_lost(cluster: str, tmp_path: Path) -> None:
    lost = tmp_path.parent / f"{tmp_path.name}-lost"
    (tmp_path / "train.py").write_text(CURABLE.format(lost=str(lost)))
    words = ["try", "cures", "--on", "ray", "--minutes", "4", "--out", "run", "--json"]
    ended = holter(tmp_path, cluster, *words, "train.py")
    assert ended.returncode == 1, ended.stderr
    assert lost.exists()
    leading = json.loads(ended.stdout)["diagnosis"]["leading"]
    assert (leading["rule"], leading["confidence"]) == ("uncleared-gradients", "certain")
    tried = [event.what for event in Run.load(tmp_path / "run").events_of(CureTried)]
    assert tried
    assert not [each for each in tried if each.failed]
    again = holter(tmp_path, cluster, "try", "cures", "--on", "ray", "--trust", "--json", "run")
    assert json.loads(again.stdout)["diagnosis"]["leading"] == leading, again.stderr
    made = Run.load(tmp_path / "run").events_of(CureTried)
    assert len(made) == len(tried)  # nothing finished runs twice


@pytest.mark.slow
@pytest.mark.exhaustive
def test_sweeps_of_learning_rates(cluster: str, tmp_path: Path) -> None:
    write(tmp_path)
    words = ["try", "lr-range", "--repeats", "2", "--on", "ray", "--out", "run", "--json"]
    options = ["--option", "points=20", "--option", "steps=20", "train.py", "0.1"]
    ended = holter(tmp_path, cluster, *words, *options)
    assert ended.returncode == 0, ended.stderr
    parts = [Run.load(tmp_path / f"run/parts/{number}-of-2") for number in range(2)]
    whole = Run.load(tmp_path / "run")
    for number, part in enumerate(parts):
        name = f"sweep {number}"
        mine, theirs = (run[LR_RANGE_HELD][name].values for run in (whole, part))
        assert mine.tobytes() == theirs.tobytes()


@pytest.mark.slow
@pytest.mark.exhaustive
def test_changes_of_a_replay(cluster: str, tmp_path: Path) -> None:
    write(tmp_path, value=-5.0)
    holter(tmp_path, cluster, "run", "--no-check", "--out", "run", "train.py", "0.01")
    ended = holter(tmp_path, cluster, "try", "replay", "run", "--on", "ray", "--json")
    assert ended.returncode == 1, ended.stderr
    assert json.loads(ended.stdout)["diagnosis"]["leading"]["rule"] == "nonfinite-birth"
    tried = {event.what.name for event in Run.load(tmp_path / "run").events_of(ChangeTried)}
    made = [
        event.what.name
        for number in range(4)
        for event in Run.load(tmp_path / f"run/parts/{number}-of-4").events_of(ChangeTried)
    ]
    assert len(made) == len(set(made))
    assert set(made) == tried
    again = holter(tmp_path, cluster, "try", "replay", "run", "--on", "ray", "--json")
    assert "handing out" not in again.stderr  # every part is finished
