"""Systems that lack what Linux has: what Windows and macOS do not have is taken away first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import holter
from holter.record.portable import _write_at, lock, process_exists, write_at

# What torch and Python itself need of it is imported before.
WITHOUT = """
import multiprocessing.util, os, pathlib, signal, subprocess, sys, tempfile
import numpy, rich.console, torch, torch.utils.data
for name in ("sysconf", "fork", "pread", "pwrite", "nice", "killpg", "setpgid", "getpgid",
             "sched_getaffinity", "getloadavg", "uname", "getuid", "O_CLOEXEC", "register_at_fork"):
    delattr(os, name)
for name in ("SIGKILL", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGHUP", "SIGQUIT", "setitimer"):
    delattr(signal, name)
for name in ("fcntl", "resource", "termios", "pwd", "grp", "tty", "pty"):
    sys.modules[name] = None

def refuse(event, arguments):
    if event == "open" and str(arguments[0]).startswith(("/proc", "/sys")):
        raise FileNotFoundError(arguments[0])

sys.addaudithook(refuse)
"""


CODE = """
import holter
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e4)
x = torch.randn(64, 4)
with holter.watch(model, optimizer, "run", quiet=True, budget=None):
    for _ in range(30):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), x[:, :1]).backward()
        optimizer.step()
from holter._cli import main
assert main(["check", "run"]) == 1

import importlib, pkgutil
for module in pkgutil.walk_packages(holter.__path__, "holter."):
    if not module.name.startswith(("holter.integrations", "holter.__main__")):
        importlib.import_module(module.name)  # the others import other tools
assert {"holter.watching.heart", "holter.scripts.sweeps.plan"} <= set(sys.modules)
"""


@pytest.mark.slow
def test_a_training_is_diagnosed_and_every_module_is_imported(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WITHOUT + CODE],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "huge-updates" in done.stdout or "nonfinite-loss" in done.stdout
    run = holter.Run.load(tmp_path / "run")
    assert run.steps == 30
    assert run.meta.status == "finished"
    assert "error" not in done.stderr


def test_writing_at_a_place_without_pwrite(tmp_path: Path) -> None:
    for write in (write_at, _write_at):
        file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        try:
            assert write(file, b"12345678", 0) == 8
            assert write(file, b"ab", 4) == 2
            assert write(file, b"c", 0) == 1
        finally:
            os.close(file)
        assert (tmp_path / "file").read_bytes() == b"c234ab78"


def test_a_process_that_has_ended_does_not_exist() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert process_exists(os.getpid())
    assert not process_exists(process.pid)


def test_windows_is_not_asked_by_a_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """There signal 0 is Ctrl-C for the whole console."""
    sent: list[int] = []
    monkeypatch.setattr(os, "kill", lambda process, number: sent.append(number))
    monkeypatch.setattr(os, "name", "nt")
    assert process_exists(12345)
    monkeypatch.undo()
    assert sent == []


def test_a_file_is_locked_once(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as first:
        lock(first.fileno())
        with (tmp_path / "lock").open("w") as second, pytest.raises(BlockingIOError):
            lock(second.fileno())
