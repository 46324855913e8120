"""Which models `holter run` watches."""

import subprocess
import sys
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


RESUMED = """\
import copy
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(400, 16)
y = (x[:, :4].sum(1) > 0).long()

def make():
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
    return net, torch.optim.Adam(net.parameters(), lr=1e-2)

net, optimizer = make()
average = copy.deepcopy(net)
for step in range(120):
    if step == 40:
        state = net.state_dict(), optimizer.state_dict()
        {again}
        net.load_state_dict(state[0])
        optimizer.load_state_dict(state[1])
        average = copy.deepcopy(net)
    rows = torch.randint(0, 400, (32,))
    {cleared}.zero_grad()
    F.cross_entropy(net(x[rows]), y[rows]).backward()
    if {skipped}:
        optimizer.zero_grad()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("again", "cleared", "skipped", "is_found"),
    [
        ("net = make()[0]", "optimizer", "False", True),
        ("net = make()[0]", "net", "False", True),
        ("net, unused = make()", "optimizer", "False", True),
        ("net, optimizer = make()", "optimizer", "False", False),
        ("net, optimizer = make()", "net", "step in range(60, 80)", False),
    ],
    ids=["stale optimizer", "leftover gradients", "unused optimizer", "both", "skipped batches"],
)
def test_a_model_that_is_created_again_for_a_resume(
    again: str, cleared: str, skipped: str, is_found: bool, here: Path
) -> None:
    script = RESUMED.format(again=again, cleared=cleared, skipped=skipped)
    (here / "resumed.py").write_text(script)
    holter_run("--out", "run", "resumed.py", cwd=here)
    found = {f.rule: f for f in holter.check(holter.Run.load(here / "run")).findings}
    assert ("parameters-outside-model" in found) == is_found
    if is_found:
        stale = found["parameters-outside-model"]
        assert stale.severity.name == "ERROR"
        assert 40 <= stale.onset < 50


BY_CLOSURE = """\
import copy
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 4)
y = x.sum(1, keepdim=True).sin()
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
copies = []
optimizer = torch.optim.LBFGS(net.parameters(), lr=0.3)
for step in range(20):
    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        return loss
    optimizer.step(closure)
    copies.append(copy.deepcopy(net))  # with its gradients
    optimizer.zero_grad()
"""


def test_copies_with_gradients_replace_no_model(here: Path) -> None:
    (here / "closure.py").write_text(BY_CLOSURE)
    holter_run("--out", "run", "closure.py", cwd=here)
    run = holter.Run.load(here / "run")
    assert len(run.meta.model) == 1
    assert "parameters-outside-model" not in {f.rule for f in holter.check(run).findings}


INNER_LOOPS = """\
import copy
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
for task in range(60):
    x = torch.randn(20, 1)
    y = torch.rand(1) * torch.sin(x)
    fast = copy.deepcopy(model)
    {prepare}
    for _ in range(4):
        loss = nn.functional.mse_loss(fast(x), y)
        {update}
    with torch.no_grad():
        for slow, adapted in zip(model.parameters(), fast.parameters()):
            slow += 0.5 * (adapted - slow)
print(loss.item())
"""
BY_OPTIMIZERS = INNER_LOOPS.format(
    prepare="optimizer = torch.optim.Adam(fast.parameters(), lr=0.01)",
    update="optimizer.zero_grad(); loss.backward(); optimizer.step()",
)
BY_HAND = INNER_LOOPS.format(
    prepare="weights = list(fast.parameters())",
    update="""
        grads = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, grad in zip(weights, grads):
                weight -= 0.05 * grad
    """.strip(),
)
WITHOUT_TIME = (
    "import sys; from holter._cli import main; from holter.scripts import discovery;"
    " discovery._FREE = discovery._SHARE = 0.0; sys.exit(main(sys.argv[1:]))"
)


def test_optimizers_of_an_inner_loop_are_left_out_when_watching_them_takes_too_long(
    here: Path,
) -> None:
    (here / "inner.py").write_text(BY_OPTIMIZERS)
    told = subprocess.run(
        [sys.executable, "-c", WITHOUT_TIME, "run", "--out", "run", "inner.py"],
        cwd=here, capture_output=True, text=True, check=True,
    )  # fmt: skip
    plain = subprocess.run(
        [sys.executable, "inner.py"], cwd=here, capture_output=True, text=True, check=True
    )
    assert told.stdout.startswith(plain.stdout)
    run = holter.Run.load(here / "run")
    assert len(run.meta.model) == 1
    assert any("creates optimizers faster" in note for note in run.meta.notes)
    assert holter.check(run).findings == ()


def test_few_copies_are_followed_of_those_that_an_inner_loop_adapts_by_hand(here: Path) -> None:
    (here / "inner.py").write_text(BY_HAND)
    holter_run("--out", "run", "inner.py", cwd=here)
    run = holter.Run.load(here / "run")
    assert 4 < len(run.meta.model) <= 17
    assert any("models are updated without an optimizer" in note for note in run.meta.notes)
    assert holter.check(run).findings == ()
