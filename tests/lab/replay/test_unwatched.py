"""A script that watches itself is replayed without recording itself again."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from holter import Run, Setup
from holter.diagnosis.facts.replays import replayed
from holter.lab.replay.unwatched import Unwatched
from holter.watching.watch import Watch, watch

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import holter

torch.manual_seed(0)
x = torch.randn(512, 4)
y = (x[:, :1] > 0).float()
x[400] = 1e30
loader = DataLoader(TensorDataset(x, y), 16, shuffle=True)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.MSELoss()
with holter.watch(model, optimizer, "run", quiet=True, budget=None) as w:
    setup = holter.Setup.of_watch(w, criterion, loader)
    with w.paused():
        assert setup.model is model
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
"""


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def made() -> Unwatched:
    model = nn.Linear(2, 1)
    return Unwatched(model, torch.optim.SGD(model.parameters(), lr=0.1))


def test_it_has_every_public_name_of_a_watch() -> None:
    unwatched = made()
    assert {name for name in dir(unwatched) if not name.startswith("_")} == public(Watch)


def test_its_methods_take_what_those_of_a_watch_take() -> None:
    for name in public(Watch):
        theirs, ours = vars(Watch)[name], vars(Unwatched).get(name)
        if inspect.isfunction(theirs):
            required = [
                parameter.name
                for parameter in inspect.signature(theirs).parameters.values()
                if parameter.default is parameter.empty
                and parameter.kind is not parameter.VAR_KEYWORD
            ]
            inspect.signature(ours).bind(*required)
    given = inspect.signature(watch).parameters
    inspect.signature(Unwatched).bind(**dict.fromkeys(given))


def test_a_setup_is_made_of_it() -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    unwatched = Unwatched(model, optimizer)
    setup = Setup.of_watch(unwatched, nn.MSELoss(), [])  # type: ignore[arg-type]
    with setup.aside():
        assert setup.model is model
        assert setup.optimizers == (optimizer,)


@pytest.mark.slow
def test_a_script_with_a_setup_of_its_watch_is_replayed(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    subprocess.run([sys.executable, "train.py"], cwd=tmp_path, check=True, timeout=120)
    ran = subprocess.run(
        [sys.executable, "-m", "holter", "try", "replay", "--no-ladder", "run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    found = replayed(Run.load(tmp_path / "run"))
    assert found is not None, ran.stderr
    assert found.verdict == "bit for bit"
