"""`holter seeds` on an unmodified script."""

import json
from pathlib import Path

import numpy as np
import pytest

from holter._cli import main
from holter.scripts.seeding import shifted_seeds

TRAINING = """\
import random, sys
import numpy as np
import torch
torch.manual_seed(5)
np.random.seed(seed=5)
x = torch.randn(64, 4)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=float(sys.argv[1]))
for _ in range(12):
    optimizer.zero_grad()
    loss = ((model(x) - x[:, :1]) ** 2).mean()
    loss.backward()
    optimizer.step()
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text(TRAINING)
    return path


def test_seeds_shift_those_of_the_script_and_finished_runs_stay(
    script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["seeds", "--n", "2", "-j", "2", "--out", "sweep", "--json", "--plot", "p.png"]
    assert main([*words, "--", "python", "train.py", "0.1"]) == 0
    document = json.loads(capsys.readouterr().out)
    values = [each["value"] for each in document["variants"][0]["values"]]
    assert values[0] != values[1]
    assert (tmp_path / "p.png").stat().st_size > 1000
    written = (tmp_path / "sweep/A/seed-0/meta.json").stat().st_mtime_ns
    assert main(["seeds", "--out", "sweep", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == document
    assert (tmp_path / "sweep/A/seed-0/meta.json").stat().st_mtime_ns == written


def test_bad_input_gives_one_sentence(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, sentence in (
        (["seeds"], "Give a command"),
        (["seeds", "--vary", "lr", "--", "python", "train.py"], "write NAME=VALUE"),
        (["seeds", "--metric", "nonsense", "--", "python", "train.py"], "There is no metric"),
        (["seeds", "--", "python", "train.py", "{lr}"], "{lr} has no values"),
    ):
        assert main(words) == 2
        said = capsys.readouterr().err
        assert sentence in said
        assert len(said.splitlines()) == 1


def test_shifted_seeds_shift_all_generators_and_put_them_back() -> None:
    import random

    import torch

    def drawn() -> list[float]:
        random.seed(3)
        np.random.seed(seed=3)
        torch.manual_seed(3)
        own = np.random.default_rng(np.int64(3))
        return [random.random(), np.random.rand(), float(torch.rand(())), own.random()]

    functions = random.seed, np.random.seed, torch.manual_seed, np.random.default_rng
    plain = drawn()
    found = []
    for shift in (0, 1, 1, 2):
        with shifted_seeds(shift) as after_torch:
            after_torch()
            found.append(drawn())
    assert found[0] == plain
    assert found[1] == found[2]
    assert not set(found[1]) & {*plain, *found[3]}
    now = random.seed, np.random.seed, torch.manual_seed, np.random.default_rng
    assert now == functions
