"""`git bisect run holter run train.py` finds the commit that broke a training."""

import json
import os
import subprocess
import sys
from pathlib import Path

from launched import environment

TRAIN = """\
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2] + 0.05 * torch.randn(256, 1)

model = nn.Sequential(nn.Linear(8, {hidden}), nn.Tanh(), nn.Linear({hidden}, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for epoch in range({epochs}):
    for index in torch.randperm(len(x)).split(64):
        loss = criterion(model(x[index]), y[index])
        {zero_grad}
        loss.backward()
        optimizer.step()
    print(f"epoch {{epoch}}: loss {{loss.item():.4f}}")
"""
CLEARS, FORGETS = "optimizer.zero_grad()", "# gradients"
COMMITS = [  # what each commit changes is told by what it is called
    ("start", {"hidden": 16, "epochs": 20, "zero_grad": CLEARS}),
    ("widen", {"hidden": 32, "epochs": 20, "zero_grad": CLEARS}),
    ("train longer", {"hidden": 32, "epochs": 25, "zero_grad": CLEARS}),
    ("tidy up", {"hidden": 32, "epochs": 25, "zero_grad": FORGETS}),
    ("train even longer", {"hidden": 32, "epochs": 30, "zero_grad": FORGETS}),
    ("narrow", {"hidden": 24, "epochs": 30, "zero_grad": FORGETS}),
]
GUILTY = "tidy up"


def test_git_bisect_finds_the_commit(tmp_path: Path) -> None:
    config = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    people = {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "A"), ("EMAIL", "a@example.org"))
    }
    env = environment(**config, **people)

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    git("init", "--quiet")
    commits = {}
    for message, values in COMMITS:
        (tmp_path / "train.py").write_text(TRAIN.format(**values))
        git("add", "train.py")
        git("commit", "--quiet", "--message", message)
        commits[message] = git("rev-parse", "HEAD")

    git("bisect", "start", commits["narrow"], commits["start"])
    said = git("bisect", "run", sys.executable, "-m", "holter", "run", "train.py")
    assert f"{commits[GUILTY]} is the first bad commit" in said
    assert git("rev-parse", "refs/bisect/bad") == commits[GUILTY]

    runs = list((tmp_path / "holter-runs").iterdir())
    tried = [json.loads((each / "meta.json").read_text())["git"] for each in runs]
    assert len(tried) >= 2
    assert {each["commit"] for each in tried} <= set(commits.values())
    assert not any(each["dirty"] for each in tried)
