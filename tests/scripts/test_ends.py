"""However a script ends, it ends as it would without holter, and what it recorded is kept."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launched import SCRIPTS, Ended, Twins, holter_run, python

import holter
from holter.record.events import ExceptionRaised
from holter.record.signals import GRAD_TOTAL_NORM, LOSS
from holter.reports import text

NO_TORCH = "holter: script.py did not import torch; nothing was recorded.\n"


@pytest.fixture
def failed(both: Any) -> Twins:
    return both("exception")


@pytest.fixture
def interrupted(both: Any) -> Twins:
    return both("interrupt")


@pytest.fixture
def exited(both: Any) -> Twins:
    goal = ("--target-loss", "0", "--epochs", "2")
    return both("argparse_script", "moons", "--output-dir", "out", *goal)


def test_an_exception_has_its_own_traceback(failed: Twins) -> None:
    assert failed.plain.code == failed.watched.code == 1
    assert failed.plain.err.startswith("Traceback (most recent call last):\n")
    assert failed.plain.err.endswith("ValueError: unknown label: horse\n")
    kept = (
        "holter: the training ended with ValueError at step 30; the last 30 steps are in"
        f" {failed.run}/captures/step-00000030-exception."
        f" To find the cause: holter try replay {failed.run}\n"
    )
    assert failed.watched.err == _with_report(failed, kept)


def test_an_exception_is_an_event_of_the_run(failed: Twins) -> None:
    run = holter.Run.load(failed.run)
    assert run.meta.status == "failed"
    (event,) = run.events_of(ExceptionRaised)
    lines = (SCRIPTS / "exception.py").read_text().splitlines()
    raised = next(n for n, line in enumerate(lines, 1) if "raise ValueError" in line)
    assert event.what == ExceptionRaised(
        "ValueError", "unknown label: horse", f"{SCRIPTS / 'exception.py'}:{raised}"
    )


def test_an_interrupt_kills_as_it_kills_python(interrupted: Twins) -> None:
    assert interrupted.plain.code == interrupted.watched.code == -signal.SIGINT
    assert interrupted.plain.err.endswith("KeyboardInterrupt\n")
    assert interrupted.watched.err == _with_report(interrupted)
    assert holter.Run.load(interrupted.run).meta.status == "interrupted"


def test_sys_exit_keeps_its_code(exited: Twins) -> None:
    assert exited.plain.code == exited.watched.code == 3
    assert exited.plain.err.endswith("is above 0.0\n")
    assert exited.watched.err == _with_report(exited)


@pytest.mark.parametrize("which", ["failed", "interrupted", "exited"])
def test_what_was_recorded_is_kept(which: str, request: pytest.FixtureRequest) -> None:
    twins: Twins = request.getfixturevalue(which)
    assert twins.watched.out == twins.plain.out
    assert twins.watched_truth == twins.truth
    run = holter.Run.load(twins.run)
    assert run.finished
    assert run.meta.steps == run.steps == len(twins.truth["loss"]) >= 20
    for recorded, key in ((LOSS, "loss"), (GRAD_TOTAL_NORM, "grad_norm")):
        series = run[recorded][""]
        assert series.steps.tolist() == list(range(run.steps))
        np.testing.assert_allclose(series.values, twins.truth[key], rtol=1e-4)
    assert holter.check(run).findings == ()


@pytest.mark.parametrize(
    "body",
    [
        "sys.exit()",
        "sys.exit(None)",
        "sys.exit(0)",
        "sys.exit(3)",
        "sys.exit(-1)",
        "sys.exit(True)",
        "sys.exit('too bad')",
        "sys.exit((1, 2))",
        "raise SystemExit(5)",
        "os._exit(6)",
        "raise KeyboardInterrupt",
        "raise ValueError('two\\nlines') from KeyError('why')",
        "raise ExceptionGroup('both', [OSError(1, 'a'), TypeError('b')])",
        "class Odd(BaseException): pass\nraise Odd(7)",
        "(lambda: 1 / 0)()",
        "f = lambda n: f(n + 1)\nf(0)",
        "assert open('script.py').read() == '', 'never true'",
        "print('to the end', file=sys.stderr)",
        "sys.excepthook = lambda *error: print('mine', error[0])\n1 / 0",
        "import atexit\natexit.register(print, 'last words')\n1 / 0",
        "import warnings\nwarnings.warn('careful')",
        "print('\\udcff')",
        "sys.stdout.write('no newline')\nos.kill(os.getpid(), 15)",
    ],
)
def test_code_and_traceback_are_those_of_python(body: str, here: Path) -> None:
    (here / "script.py").write_text(f"import os, sys\nprint('begun')\n{body}\n")
    plain, watched = _plain_and_watched("script.py", cwd=here)
    assert watched.code == plain.code
    assert watched.out == plain.out
    died = body.startswith("os._exit") or "os.kill" in body
    assert _any_depth(watched.err) == _any_depth(plain.err) + ("" if died else NO_TORCH)


@pytest.mark.parametrize("source", ["x = (\n", "def f():\nreturn 1\n", "x = 'a\n"])
def test_a_syntax_error_is_shown_as_python_shows_it(source: str, here: Path) -> None:
    (here / "script.py").write_text(source)
    plain, watched = _plain_and_watched("script.py", cwd=here)
    assert watched.code == plain.code == 1
    assert plain.err in watched.err
    assert "holter/" not in watched.err


@pytest.mark.parametrize("arguments", [("missing.py",), ("missing/train.py", "--lr", "1")])
def test_a_missing_script_is_one_sentence(arguments: tuple[str, ...], here: Path) -> None:
    ended = holter_run(*arguments, cwd=here)
    _assert_refused(ended, f"holter: Cannot read {arguments[0]}")
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("module", ["no_such_module", "no_such.module", "math"])
def test_a_missing_module_is_one_sentence(module: str, here: Path) -> None:
    _assert_refused(holter_run("-m", module, cwd=here), f"holter: No module {module}")


def test_no_script_at_all_is_wrong_use(here: Path) -> None:
    ended = holter_run(cwd=here)
    assert (ended.code, ended.out) == (2, b"")
    assert "usage: holter run [options] [-m] SCRIPT" in ended.err


def test_a_script_without_torch_leaves_no_run(here: Path) -> None:
    (here / "script.py").write_text("print('hello')\n")
    ended = holter_run("--out", "run", "script.py", cwd=here)
    assert ended == Ended(0, b"hello\n", NO_TORCH)
    assert [each.name for each in here.iterdir()] == ["script.py"]


def test_a_script_without_training_says_so(here: Path) -> None:
    (here / "script.py").write_text("import torch\nprint(torch.ones(2).sum().item())\n")
    ended = holter_run("--out", "run", "script.py", cwd=here)
    assert (ended.code, ended.out) == (0, b"2.0\n")
    assert "called neither backward() nor torch.autograd.grad" in " ".join(ended.err.split())
    meta = json.loads((here / "run" / "meta.json").read_text())
    assert (meta["status"], meta["steps"]) == ("finished", 0)


def test_a_script_that_refuses_its_arguments_gets_no_advice(here: Path) -> None:
    (here / "script.py").write_text(
        "import argparse\nimport torch\nargparse.ArgumentParser().parse_args(['--what'])\n"
    )
    ended = holter_run("--out", "run", "script.py", cwd=here)
    assert ended.code == 2
    assert "SystemExit: 2" in ended.err
    assert "backward()" not in ended.err


def test_gradients_that_update_nothing_are_told(here: Path) -> None:
    (here / "script.py").write_text(
        "import torch\n"
        "model = torch.nn.Linear(3, 1)\n"
        "for _ in range(7):\n"
        "    model(torch.ones(2, 3)).sum().backward()\n"
        "    model.zero_grad()\n"
    )
    ended = holter_run("--out", "run", "script.py", cwd=here)
    assert ended.code == 0
    assert "backward() ran 7 times, but no optimizer stepped" in " ".join(ended.err.split())


def _any_depth(trace: str) -> str:
    """Without how often a line repeats: a few frames of the stack are holter's."""
    return re.sub(r"repeated \d+ more", "repeated", trace)


def _plain_and_watched(*arguments: str, cwd: Path) -> tuple[Ended, Ended]:
    return python(*arguments, cwd=cwd), holter_run(*arguments, cwd=cwd)


def _with_report(twins: Twins, kept: str = "") -> str:
    """What standard error holds: a line before what the script writes, what is kept, the report."""
    run = holter.Run.load(twins.run)
    report = text.render(run, holter.check(run))
    assert report
    return f"holter: recording to {twins.run}\n{twins.plain.err}{kept}{report}"


def _assert_refused(ended: Ended, beginning: str) -> None:
    assert (ended.code, ended.out) == (2, b"")
    assert ended.err.startswith(beginning), ended.err
    assert ended.err.count("\n") == 1
