"""Cures of a setup, in this process."""

from pathlib import Path

import torch
from torch import nn

from holter import Run
from holter.diagnosis.facts import Facts
from holter.lab.cures.searching import Search
from holter.lab.cures.setups import SetupBench
from holter.lab.setup import Setup
from holter.lab.state import State
from holter.lab.writing import Lab


def too_slow() -> Setup:
    torch.manual_seed(0)
    x = torch.randn(256, 8)
    y = (x @ torch.randn(8, 3)).argmax(1)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=2e-3)
    batches = [(x[i : i + 32], y[i : i + 32]) for i in range(0, 256, 32)]
    return Setup.of(model, optimizer, nn.CrossEntropyLoss(), batches)


def test_the_rate_is_raised_and_the_setup_restored(tmp_path: Path) -> None:
    setup = too_slow()
    state = State(setup)
    bench = SetupBench(setup, tmp_path / "run")
    bench.record(60)
    with Lab(tmp_path / "run") as lab:
        Search(bench, lab, bench.pace, seconds=60, tell=lambda _: None).search()
    cures = Facts(Run.load(tmp_path / "run")).cures
    assert cures is not None
    assert cures.smallest is not None
    assert cures.smallest.name.startswith("learning rate x 10")
    state.prove()
