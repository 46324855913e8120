"""The pytest plugin, by tests that pytest runs with it."""

import shlex
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import torch
from torch import nn

import holter
from holter._cli import make_parser
from holter.testing import assert_overfits_batch, assert_trains

pytest_plugins = ["pytester"]

EXAMPLES = Path(__file__).parents[2] / "examples" / "ci"
EXAMPLE = EXAMPLES / "test_training.py"
LOST = """

def test_lost(holter_trains):
    lost = setup()
    lost.optimizers[0].param_groups[0]["params"] = list(make_model().parameters())
    holter_trains(lost, steps=60)
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
    pytester.makepyfile(test_training=EXAMPLE.read_text() + LOST)
    installed = entry_points(group="pytest11", name="holter")
    plugin = () if installed else ("-p", "holter.pytest_plugin")
    done = pytester.runpytest_subprocess(*plugin, "-p", "no:cacheprovider")
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(["*parameters-outside-model*"])


def test_the_commands_of_the_example_workflow_are_right() -> None:
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load((EXAMPLES / "training.yml").read_text())
    assert "workflow_call" in workflow[True]  # YAML reads the key `on` as true
    steps = workflow["jobs"]["training"]["steps"]
    commands = [step["run"] for step in steps if step.get("run", "").startswith("holter ")]
    parsed = [make_parser().parse_args(shlex.split(each, comments=True)[1:]) for each in commands]
    assert [args.command for args in parsed] == ["run", "check", "check"]
    assert [getattr(args, "format", None) for args in parsed[1:]] == ["github", "sarif"]


def test_the_plugin_costs_other_tests_nothing() -> None:
    code = "import sys, holter.pytest_plugin; print({'torch', 'numpy', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
