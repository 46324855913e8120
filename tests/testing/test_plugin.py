"""The pytest plugin, by tests that pytest runs with it."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import torch
from torch import nn

import holter
from holter.testing import assert_overfits_batch, assert_trains

pytest_plugins = ["pytester"]

SETUP = """
import holter, torch
from torch import nn

def setup(frozen=False):
    torch.manual_seed(0)
    x = torch.randn(64, 4)
    y = (x[:, 0] > 0).long()
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    other = nn.Linear(4, 2) if frozen else model
    optimizer = torch.optim.SGD(other.parameters(), lr=0.5)
    return holter.Setup.of(model, optimizer, nn.functional.cross_entropy, [(x, y)])
"""


def made(*, lost: bool = False) -> holter.Setup:
    torch.manual_seed(0)
    inputs = torch.randn(64, 4)
    labels = (inputs[:, 0] > 0).long()
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    held = nn.Linear(4, 2) if lost else model
    optimizer = torch.optim.SGD(held.parameters(), lr=0.5)
    return holter.Setup.of(model, optimizer, nn.functional.cross_entropy, [(inputs, labels)])


def test_a_training_that_works() -> None:
    setup = made()
    before = [parameter.clone() for parameter in setup.model.parameters()]
    checkup = assert_trains(setup, steps=40)
    assert not checkup.outcome.bad
    assert_overfits_batch(setup, steps=100)
    for parameter, old in zip(setup.model.parameters(), before, strict=True):
        assert torch.equal(parameter, old)


def test_a_training_that_does_not(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="parameters-outside-model"):
        assert_trains(lambda: made(lost=True), steps=60, folder=tmp_path)
    assert holter.Run.load(tmp_path / "run").steps == 60
    with pytest.raises(AssertionError, match="unfittable-batch"):
        assert_overfits_batch(made(lost=True), steps=60, seconds=4.0)
    with pytest.raises(holter.HolterError, match="fail_on"):
        assert_trains(made(), fail_on="fatal")


def test_the_fixtures_in_a_test_of_a_team(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        training=SETUP,
        test_training="""
        from training import setup

        def test_trains(holter_trains):
            holter_trains(setup, steps=30)

        def test_overfits(holter_overfit_batch):
            holter_overfit_batch(setup, steps=80)

        def test_lost(holter_trains):
            holter_trains(setup(frozen=True), steps=60)
        """,
    )
    installed = entry_points(group="pytest11", name="holter")
    plugin = () if installed else ("-p", "holter.pytest_plugin")
    done = pytester.runpytest_subprocess(*plugin, "-p", "no:cacheprovider")
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(["*parameters-outside-model*"])


def test_the_plugin_costs_other_tests_nothing() -> None:
    code = "import sys, holter.pytest_plugin; print({'torch', 'numpy', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
