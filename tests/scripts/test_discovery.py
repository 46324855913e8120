"""Which models `holter run` watches."""

from pathlib import Path

import pytest
from launched import holter_run

import holter

TWO_NETWORKS = """\
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(400, 16)
y = (x[:, :4].sum(1) > 0).long()
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
other = nn.Sequential(nn.Linear({width}, 32), nn.ReLU(), nn.Linear(32, 2)){other}
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(60):
    rows = torch.randint(0, 400, (32,))
    optimizer.zero_grad()
    loss = F.cross_entropy(net(x[rows]), y[rows])
    (loss + F.cross_entropy(other({given}), y[rows])).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("width", "other", "given", "watched"),
    [
        (16, "", "x[rows]", 2),
        (2, ".eval()", "net(x[rows])", 1),
        (2, ".requires_grad_(False)", "net(x[rows])", 1),
    ],
    ids=["forgotten", "in eval mode", "frozen"],
)
def test_a_model_that_no_optimizer_holds(
    width: int, other: str, given: str, watched: int, here: Path
) -> None:
    (here / "two.py").write_text(TWO_NETWORKS.format(width=width, other=other, given=given))
    holter_run("--out", "run", "two.py", cwd=here)
    run = holter.Run.load(here / "run")
    assert len(run.meta.model) == watched
    found = {finding.rule for finding in holter.check(run).findings}
    assert ("parameters-outside-optimizer" in found) == (watched == 2)


TWO_STAGES = """\
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(400, 16)
y = (x[:, :4].sum(1) > 0).long()
teacher = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
student = nn.Linear(16, 2)
for net in (teacher, student):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(60):
        rows = torch.randint(0, 400, (32,))
        with torch.no_grad():
            labels = y[rows] if net is teacher else teacher(x[rows]).argmax(1)
        optimizer.zero_grad()
        F.cross_entropy(net(x[rows]), labels).backward()
        optimizer.step()
"""


def test_a_model_of_an_earlier_stage_is_not_forgotten(here: Path) -> None:
    (here / "stages.py").write_text(TWO_STAGES)
    holter_run("--out", "run", "stages.py", cwd=here)
    assert holter.check(holter.Run.load(here / "run")).findings == ()
