"""The stories of `examples/` that their first lines name, each with the commands given there."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from launched import HOLTER, environment, python

EXAMPLES = Path(__file__).parents[2] / "examples"


def told(folder: Path, *words: str) -> dict[str, Any]:
    """Return the JSON report of a command that is given `examples/...` in an empty folder."""
    shutil.copytree(EXAMPLES, folder / "examples")
    env = environment(CUDA_VISIBLE_DEVICES="")
    ended = python(*HOLTER, *words, cwd=folder, env=env, timeout=300)
    text = ended.err if words[0] == "run" else ended.out.decode()
    assert "{\n" in text, ended.err
    document: dict[str, Any] = json.loads(text[text.index("{\n") :])  # after other lines
    return document


def test_a_leak_and_a_slow_loader(tmp_path: Path) -> None:
    script = "examples/slow_and_leaking.py"
    document = told(tmp_path, "run", "--json", script)
    leading = document["diagnosis"]["leading"]
    line = next(
        number
        for number, text in enumerate((EXAMPLES / "slow_and_leaking.py").read_text().split("\n"), 1)
        if "total += loss" in text
    )
    assert leading["rule"] == "kept-graphs"
    assert f"`total` (slow_and_leaking.py:{line})" in leading["summary"]
    assert "total += loss.detach()" in leading["fix"]
    assert "input-bound" in {each["rule"] for each in document["findings"]}
    assert document["performance"]["time"]["bound"] == "input"


@pytest.mark.parametrize(
    ("experiment", "script", "rule", "says"),
    [
        ("resume", "forgotten_schedule.py", "incomplete-checkpoint", "not that of the scheduler"),
        ("determinism", "restless_embedding.py", "nondeterministic-step", "`index_put`"),
    ],
)
def test_an_experiment(experiment: str, script: str, rule: str, says: str, tmp_path: Path) -> None:
    document = told(tmp_path, "try", experiment, "--json", f"examples/{script}")
    leading = document["diagnosis"]["leading"]
    assert leading["rule"] == rule
    assert says in leading["summary"]


def test_a_gain_of_one_seed(tmp_path: Path) -> None:
    command = ("python", "examples/lucky_seed.py", "--lr", "{lr}")
    options = ("--n", "2", "-j", "2", "--vary", "lr=0.05,0.07", "--json")
    document = told(tmp_path, "seeds", *options, "--", *command)
    assert [len(each["values"]) for each in document["variants"]] == [2, 2]
    (comparison,) = document["comparisons"]
    assert comparison["better_beyond_noise"] is None
    assert comparison["says"].startswith("no difference beyond noise")
