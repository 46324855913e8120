"""`holter run` on trainings whose updates no torch optimizer makes, or another process."""

from pathlib import Path
from typing import Any

import pytest
from launched import Twins, holter_run, once, run_both

import holter
from holter.record.signals import (
    GRAD_TOTAL_NORM,
    LOSS,
    LR,
    UPDATE_RATIO,
    VAL_LOSS,
    WEIGHT_TOTAL_NORM,
)

UPDATES = Path(__file__).parent / "updates"

Both = Any


@pytest.fixture
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    """Run one of the scripts both ways; the second who asks for the same gets the same."""
    folder = tmp_path_factory.getbasetemp() / "updates"

    def run(script: str, *arguments: str) -> Twins:
        path, name = UPDATES / f"{script}.py", "_".join((script, *arguments))
        return once(folder, name, lambda here: run_both(path, arguments, here))

    return run


@pytest.mark.parametrize(
    ("launch", "updater"),
    [
        (("polynomial",), "The script"),
        (("by_hand", "0.1"), "The script"),
        (("keras_fit",), "Keras"),
        (("fastai_fit",), "fastai"),
    ],
    ids=lambda given: given[0] if isinstance(given, tuple) else "",
)
def test_updates_without_a_torch_optimizer(
    launch: tuple[str, ...], updater: str, both: Both
) -> None:
    twins = both(*launch)
    if "ModuleNotFoundError" in twins.plain.err:
        pytest.skip(twins.plain.err.splitlines()[-1])
    assert (twins.plain.code, twins.watched.code) == (0, 0), twins.watched.err
    assert twins.watched.out == twins.plain.out
    assert twins.watched_truth == twins.truth
    run = holter.Run.load(twins.run)
    losses = twins.truth["loss"]
    assert run.steps == len(losses)
    assert run[LOSS][""].values.tolist() == pytest.approx(losses, rel=1e-4)
    for signal in (GRAD_TOTAL_NORM, WEIGHT_TOTAL_NORM):
        assert len(run[signal][""]) == len(losses)
    assert all(len(series) == len(losses) for series in run[UPDATE_RATIO].values())
    if twins.truth["val_loss"]:
        (validation,) = run[VAL_LOSS].values()
        assert validation.values.tolist() == pytest.approx(twins.truth["val_loss"], rel=1e-4)
    assert LR not in run
    notes = [note for note in run.meta.notes if "learning rate" in note]
    assert [note.startswith(f"{updater} updates the weights itself") for note in notes] == [True]
    assert holter.check(run).findings == ()


@pytest.mark.parametrize(
    ("rate", "rule", "code"),
    [("30", "huge-updates", 1), ("1e-5", "tiny-updates", 1)],
)
def test_faults_of_updates_by_hand_are_found(rate: str, rule: str, code: int, here: Path) -> None:
    ended = holter_run("--out", "run", UPDATES / "by_hand.py", rate, cwd=here)
    assert ended.code == code
    leading = holter.diagnose(holter.check(holter.Run.load(here / "run"))).leading
    assert leading is not None
    assert leading.rule == rule


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_processes_that_train_become_ranks(method: str, both: Both) -> None:
    twins = both("spawned", method)
    assert (twins.plain.code, twins.watched.code) == (0, 0), twins.watched.err
    assert twins.watched.out == twins.plain.out
    assert holter.Run.load(twins.run).ranks == (0, 1)
    for rank, losses in enumerate(twins.truth):
        run = holter.Run.load(twins.run, rank=rank)
        assert run.steps == len(losses)
        assert run[LOSS][""].values.tolist() == pytest.approx(losses)
        assert run.meta.status == "finished"
        assert holter.check(run).findings == ()
    assert sorted(path.name for path in twins.run.iterdir()) == ["meta.json", "rank-0", "rank-1"]


def test_processes_that_do_not_train_leave_nothing(here: Path) -> None:
    (here / "script.py").write_text(
        "import multiprocessing\n"
        "import torch\n"
        "def work(n):\n"
        "    print(torch.ones(n).sum().item(), flush=True)\n"
        "if __name__ == '__main__':\n"
        "    worker = multiprocessing.Process(target=work, args=(3,))\n"
        "    worker.start()\n"
        "    worker.join()\n"
        "    model = torch.nn.Linear(2, 1)\n"
        "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "    for _ in range(3):\n"
        "        optimizer.zero_grad()\n"
        "        model(torch.ones(4, 2)).square().mean().backward()\n"
        "        optimizer.step()\n"
    )
    ended = holter_run("--out", "run", "script.py", cwd=here)
    assert (ended.code, ended.out) == (0, b"3.0\n")
    assert holter.Run.load(here / "run").steps == 3
    assert not list((here / "run").glob("worker-*"))


def test_a_process_that_fails_is_recorded_until_then(here: Path) -> None:
    (here / "script.py").write_text(
        "import torch\n"
        "def train(rank):\n"
        "    model = torch.nn.Linear(2, 1)\n"
        "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "    for step in range(6):\n"
        "        optimizer.zero_grad()\n"
        "        model(torch.ones(4, 2)).square().mean().backward()\n"
        "        if step == 4:\n"
        "            raise ValueError('out of data')\n"
        "        optimizer.step()\n"
        "if __name__ == '__main__':\n"
        "    torch.multiprocessing.spawn(train, nprocs=1)\n"
    )
    ended = holter_run("--out", "run", "script.py", cwd=here)
    assert ended.code == 1
    assert "ValueError: out of data" in ended.err
    run = holter.Run.load(here / "run")
    assert (run.steps, run.meta.status) == (4, "failed")


EVALUATES = """
import torch
import torch.multiprocessing as mp
from torch import nn
from torch.nn import functional as F

x = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
y = (x.sum(1) > 0).long()


def train(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    for _ in range(30):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def test(model):
    model.eval()
    with torch.no_grad():
        print(F.cross_entropy(model(x), y).item())


if __name__ == "__main__":
    model = nn.Linear(4, 2).share_memory()
    if BEFORE:
        test(model)
    process = mp.get_context("spawn").Process(target=train, args=(model,))
    process.start()
    process.join()
    test(model)
"""


@pytest.mark.parametrize("before", [False, True])
def test_what_is_evaluated_after_another_process_has_trained_is_recorded(
    before: bool, tmp_path: Path
) -> None:
    (tmp_path / "script.py").write_text(EVALUATES.replace("BEFORE", str(before)))
    ended = holter_run("--out", "run", "--fail-on", "never", "script.py", cwd=tmp_path)
    assert ended.code == 0
    run = holter.Run.load(tmp_path / "run")
    assert (run.steps, run.meta.status) == (30, "finished")
    if before:  # two passes without a step of this process between them
        assert VAL_LOSS not in run
    else:
        (series,) = run[VAL_LOSS].values()
        assert series.steps.tolist() == [29]
        assert series.values[0] == pytest.approx(float(ended.out), rel=1e-6)
