"""Variables that keep results of earlier steps, and the lines that add to them."""

import mmap
from collections import deque

import numpy as np
import pytest
import torch
from torch import nn

from holter import Run
from holter.record.events import ResultsKept
from holter.record.signals import GRAPH_KEPT, MEMORY_HELD, MEMORY_PROCESS, MEMORY_WORKERS
from holter.watching.process_memory import children, private_memory
from watching.collectors.trainings import values, watching

STEPS = 8


def train(tmp_path, loop):
    """Record a loop that is given a function for the loss, and the optimizer."""
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watching(tmp_path / "run", model, optimizer):
        loop(lambda: model(torch.randn(3, 4)).pow(2).mean(), optimizer)
    return Run.load(tmp_path / "run")


def step(loss_of, optimizer):
    optimizer.zero_grad()
    loss = loss_of()
    loss.backward()
    optimizer.step()
    return loss


def line(run, variable):
    (event,) = [e.what for e in run.events_of(ResultsKept) if e.what.variable == variable]
    return event


def test_a_sum_with_its_graphs(tmp_path):
    def loop(loss_of, optimizer):
        total = 0
        for _ in range(STEPS):
            total += step(loss_of, optimizer)

    run = train(tmp_path, loop)
    assert values(run, GRAPH_KEPT, "total") == [3, 4, 5, 6, 7]
    assert line(run, "total").code == "total += step(loss_of, optimizer)"
    assert line(run, "total").where.startswith("test_holdings.py:")
    assert line(run, "total").is_sum


def test_an_average_with_its_graphs(tmp_path):
    def loop(loss_of, optimizer):
        average = torch.zeros(())
        for _ in range(STEPS):
            average = 0.9 * average + 0.1 * step(loss_of, optimizer)

    run = train(tmp_path, loop)
    assert np.all(np.diff(values(run, GRAPH_KEPT, "average")) == 1)


def test_lists_dicts_and_attributes(tmp_path):
    class Loop:
        def __init__(self):
            self.losses = []
            self.history = {"loss": [], "latest": deque()}
            self.by_step = {}

        def run(self, loss_of, optimizer):
            for number in range(STEPS):
                loss = step(loss_of, optimizer)
                self.losses.append(loss)
                self.history["loss"].append(loss)
                self.history["latest"].append((loss, number))
                self.by_step[number] = loss

    run = train(tmp_path, Loop().run)
    histories = ("self.history['loss']", "self.history['latest']")
    for name in ("self.losses", *histories, "self.by_step"):
        assert values(run, GRAPH_KEPT, name) == [2, 3, 4, 5, 6, 7], name
    assert line(run, "self.losses").code == "self.losses.append(loss)"
    assert line(run, "self.by_step").code == "self.by_step[number] = loss"


def test_what_is_detached_has_no_graph_but_takes_memory(tmp_path):
    def loop(loss_of, optimizer):
        features, numbers, arrays = [], [], []
        for _ in range(STEPS):
            loss = step(loss_of, optimizer)
            features.append(loss.detach().expand(100).clone())
            numbers.append(loss.item())
            arrays.append(np.zeros(50))

    run = train(tmp_path, loop)
    assert GRAPH_KEPT not in run
    assert values(run, MEMORY_HELD, "features") == [400 * n for n in range(2, STEPS)]
    assert values(run, MEMORY_HELD, "arrays") == [400 * n for n in range(2, STEPS)]
    assert set(run[MEMORY_HELD]) == {"features", "arrays"}


def test_what_does_not_grow_is_not_recorded(tmp_path):
    def loop(loss_of, optimizer):
        data = [torch.randn(4) for _ in range(20)]
        latest = deque(maxlen=2)
        for _ in range(STEPS):
            losses = [loss_of() for _ in range(3)]
            optimizer.zero_grad()
            sum(losses).backward()
            optimizer.step()
            latest.append(losses[0].detach())
        assert len(data) == 20

    run = train(tmp_path, loop)
    assert GRAPH_KEPT not in run
    assert run.events_of(ResultsKept) == []


def test_a_rollout_that_becomes_longer_keeps_nothing_of_earlier_steps(tmp_path):
    def loop(loss_of, optimizer):
        for horizon in range(1, STEPS):
            total, terms = 0, []
            for _ in range(horizon):
                terms.append(loss_of())
                total = total + terms[-1]
            optimizer.zero_grad()
            total.backward()
            optimizer.step()

    assert GRAPH_KEPT not in train(tmp_path, loop)


def test_tensors_are_not_kept_alive(tmp_path):
    import weakref

    kept = []

    def loop(loss_of, optimizer):
        for _ in range(STEPS):
            total = step(loss_of, optimizer) + loss_of()
            kept.append(weakref.ref(total))

    train(tmp_path, loop)
    assert [reference() for reference in kept] == [None] * STEPS


def test_memory_of_the_process_is_read(tmp_path):
    blocks = []

    def loop(loss_of, optimizer):
        for _ in range(20):
            step(loss_of, optimizer)
            private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            blocks.append(mmap.mmap(-1, 2_000_000, private))  # not what was freed before
            blocks[-1].write(b"1" * 2_000_000)

    run = train(tmp_path, loop)
    if private_memory() is None:
        pytest.skip("this system does not tell")
    read = values(run, MEMORY_PROCESS)
    assert len(read) == 20
    assert 25e6 < read[-1] - read[0] < 80e6
    assert len(run[MEMORY_WORKERS][""]) == 5


def test_memory_of_children():
    import subprocess
    import sys

    if children() is None:
        pytest.skip("this system does not tell")
    code = "import time; block = b'x' * 50_000_000; print('ready', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        try:
            assert child.pid in (children() or ())
            assert (private_memory(child.pid) or 0) > 50e6
        finally:
            child.kill()
    assert private_memory(child.pid) is None


def test_sparse_tensors_in_a_list_do_no_harm(tmp_path):
    def loop(loss_of, optimizer):
        edges, losses = [], []
        for _ in range(STEPS):
            edges.append(torch.eye(3).to_sparse())
            losses.append(step(loss_of, optimizer))

    run = train(tmp_path, loop)
    assert run.meta.notes == ()
    assert "losses" in run[GRAPH_KEPT]
