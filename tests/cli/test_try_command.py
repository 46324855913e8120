"""`holter try`, called as a user calls it on a function that gives a setup."""

import json
from pathlib import Path

import pytest

from holter import Run
from holter._cli import main
from holter.lab.experiments import all_experiments

MODULE = """
import torch
import holter
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def parts(softmax=False):
    torch.manual_seed(0)
    x = torch.randn(512, 8)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
    if softmax:
        model.append(nn.Softmax(dim=1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loader = DataLoader(TensorDataset(x, y), 32, shuffle=True)
    return model, optimizer, nn.CrossEntropyLoss(), loader

def healthy():
    return holter.Setup.of(*parts())

def sick():
    return parts(softmax=True)

CALLS = []

class Tired(nn.Module):
    # Breaks in the first experiments, not in the steps that are recorded before.

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 3)

    def forward(self, x):
        CALLS.append(1)
        if len(CALLS) == 160:
            raise KeyError("too many calls")
        return self.layer(x)

def tired():
    model = Tired()
    _, _, loss, loader = parts()
    return model, torch.optim.Adam(model.parameters(), lr=3e-3), loss, loader

def named():
    return dict(zip(("model", "optimizer", "loss", "train"), parts()))

def wrong():
    return 7

def short():
    return parts()[:2]
"""


@pytest.fixture
def module(here: Path) -> Path:
    path = here / "mine.py"
    path.write_text(MODULE)
    return path


def test_the_list_names_every_experiment(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["try"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in all_experiments())
    assert main(["try", "--json"]) == 0
    assert {each["name"] for each in json.loads(capsys.readouterr().out)} == set(all_experiments())


@pytest.mark.parametrize("function", ["healthy", "named"])
def test_a_healthy_setup_fails_nothing(
    module: Path, function: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["try", "preflight", "--json", f"{module}:{function}"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each for each in found["checklist"] if each["status"] == "FAIL"] == []
    assert sum(each["status"] == "PASS" for each in found["checklist"]) >= 12


def test_evaluate_has_options_of_its_own(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--steps", "5", "--slice", "label", "--worst", "3", "--json", "mine:healthy"]
    assert main(["try", "evaluate", *arguments]) == 0
    tables = json.loads(capsys.readouterr().out)["experiments"]
    assert tables[0]["title"] == "the model on its training data"
    (worst,) = (table for table in tables if table["title"].startswith("samples with"))
    assert len(worst["rows"]) == 3
    assert any(table["title"].startswith("error by label") for table in tables)
    assert main(["try", "preflight", "--worst", "3", "mine:healthy"]) == 2
    assert "--worst is an option of `holter try evaluate` only" in capsys.readouterr().err


def test_a_sick_one_fails_its_check(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--out", "runs/one", "--fail-on", "warning", "--json", "mine:sick"]
    assert main(["try", "preflight", *arguments]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["diagnosis"]["leading"]["rule"] == "doubled-softmax"
    (row,) = (each for each in found["checklist"] if each["check"] == "loss-and-head")
    assert row["status"] == "FAIL"
    assert "doubled-softmax" in row["says"]
    assert Run.load("runs/one").steps == 150


def test_what_is_printed_as_a_failure_gives_exit_code_one(
    module: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["try", "preflight", "--steps", "40", "mine:sick"]) == 1
    assert "\nFAIL  loss-and-head" in capsys.readouterr().out


def test_an_internal_error_is_no_answer(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["try", "preflight", "--only", "init,checkpoint", "--steps", "158"]
    assert main([*arguments, "mine:tired"]) == 2
    said = " ".join(capsys.readouterr().out.split())
    assert "the check init failed inside holter: KeyError: 'too many calls'" in said
    assert "n/a checkpoint" in said


def test_the_run_is_an_ordinary_one(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["try", "init", "--steps", "12", "--out", "one", "mine:healthy"])
    capsys.readouterr()
    assert main(["check", "one"]) == 0
    assert "before the first step" in capsys.readouterr().out
    assert main(["check", "one", "--format", "checklist"]) == 0
    assert "passed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["prefligth", "mine:healthy"], "prefligth"),
        (["preflight"], "train.py"),
        (["preflight", "mine:nothing"], "no function nothing"),
        (["preflight", "mine:wrong"], "returned a int"),
        (["preflight", "mine:short"], "has to return"),
        (["preflight", "nowhere:healthy"], "no module nowhere"),
        (["preflight", "nowhere.py:healthy"], "no file nowhere.py"),
        (["preflight", "--only", "nonsense", "mine:healthy"], "no check 'nonsense'"),
        (["init", "--option", "depth=3", "mine:healthy"], "no option 'depth'"),
        (["preflight", "--option", "depth=3", "mine:healthy"], "write NAME=VALUE"),
        (["preflight", "nowhere.py"], "nowhere.py"),
    ],
)
def test_wrong_use_is_one_sentence(
    arguments: list[str], told: str, module: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["try", *arguments]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert "Traceback" not in said
    assert "internal error" not in said


def test_only_some_checks(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["try", "preflight", "--only", "checkpoint,init", "--json", "mine:healthy"]
    assert main(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert {each["check"] for each in found["checklist"]} == {"checkpoint"}


def test_a_check_that_needs_no_experiment(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["try", "preflight", "--only", "finite", "--json", "mine:healthy"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["checklist"]
    assert (row["check"], row["status"]) == ("finite", "PASS")


@pytest.mark.parametrize(
    "words",
    [
        ["doctor", "--minutes", "-3", "train.py"],
        ["doctor", "-j", "0", "train.py"],
        ["try", "cures", "--minutes", "soon", "train.py"],
    ],
)
def test_a_time_or_a_count_is_above_zero(words: list[str], capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "above 0" in capsys.readouterr().err
