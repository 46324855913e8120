"""Trials of a script on workers: each leaves a run, and one whose process is lost is repeated."""

import math
from pathlib import Path

import pytest

from holter.lab.cures.searching import CureTrial
from holter.record import Run
from holter.scripts.cures.bench import ScriptBench
from holter.scripts.cures.elsewhere import HandedOutBench
from holter.scripts.cures.trial import Command
from holter.scripts.sweeps.local import Processes

TRAINING = """\
import os, pathlib, signal, torch
first = pathlib.Path({lost!r})
if not first.exists():
    first.touch()
    os.kill(os.getpid(), signal.SIGKILL)
torch.manual_seed(0)
x = torch.randn(64, 4)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(30):
    optimizer.zero_grad()
    loss = ((model(x) - x[:, :1]) ** 2).mean()
    loss.backward()
    optimizer.step()
"""


def test_trials_come_back_from_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lost = tmp_path.parent / f"{tmp_path.name}-lost"
    Path("train.py").write_text(TRAINING.format(lost=str(lost)))
    command, run = Command("train.py"), tmp_path / "run"
    with ScriptBench(command, run) as here:
        bench = HandedOutBench(here, command, run, Processes(1))
        trials = [CureTrial("unchanged", 0, 20), CureTrial("learning rate x 10", 1, 20)]
        done = list(bench.run(trials, math.inf))
    assert lost.exists()
    assert [(each.trial, each.repeat, each.failed) for each in done] == [
        ("unchanged", 0, ""),
        ("learning rate x 10", 1, ""),
    ]
    assert done[1].altered and not done[0].altered
    runs = [Run.load(run / each.folder) for each in done]
    assert all(20 <= made.steps < 30 for made in runs)  # not to the end of the script
