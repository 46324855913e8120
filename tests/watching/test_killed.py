"""A training that is killed: what it had read stays, in both regimes."""

import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import holter
from holter.record import verify
from holter.record.signals import GRAD_TOTAL_NORM, LOSS

SCRIPT = """
    import os, sys, time
    import torch
    from torch import nn
    import holter
    from holter.watching import budget

    if sys.argv[2] == "sampled":
        budget.ALLOWANCE = 0.0
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watch = holter.watch(model, optimizer, sys.argv[1], quiet=True)
    x = torch.randn(16, 4)
    while True:
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        os.write(1, f"{time.time()} {loss.item()}\\n".encode())
"""


@pytest.mark.parametrize("regime", ["whole", "sampled"])
def test_all_but_the_last_moment_is_kept(tmp_path, regime):
    path = tmp_path / "run"
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(path), regime]
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    first = child.stdout.readline()
    time.sleep(1.5)
    child.kill()
    lines = [first, *child.stdout]
    child.wait()
    child.stdout.close()
    trained = [tuple(map(float, line.split())) for line in lines if line.endswith(b"\n")]
    run = holter.Run.load(path)
    assert verify(path) > 0
    series = run[LOSS][""]
    assert series.steps.tolist() == list(range(len(series)))
    np.testing.assert_allclose(series.values, [loss for _, loss in trained[: len(series)]], 1e-5)
    last_written, _ = trained[len(series) - 1]
    assert trained[-1][0] - last_written < 0.5  # a bunch waits a tenth of a second at most
    norms = run[GRAD_TOTAL_NORM][""]
    assert (len(norms) == len(series)) == (regime == "whole")
