"""Processes of holter's own that run a script: away from the terminal, with files of their own."""

import os
import signal
import sys
import tempfile
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NoReturn

from holter.record.portable import end_group
from holter.scripts.recognition.leaving import leave_process

_GRACE = 5.0  # seconds in which a process that was asked to end closes its recording


def run_apart(
    function: Callable[..., int], place: Path, output: Path | None, *args: Any
) -> NoReturn:
    """Call a function in this process, which is its own, and end it.

    Temporary files go to `place`, what is printed to the file `output` or to standard error.
    """
    leave_process(lambda: _called(function, place, output, args))


def _called(
    function: Callable[..., int], place: Path, output: Path | None, args: tuple[Any, ...]
) -> int:
    if "setpgid" in vars(os):  # not on Windows
        os.setpgid(0, 0)  # a signal of the terminal is for the parent, which ends this group
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = str(place)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    os.dup2(2, 1)
    return function(*args)


def end(process: BaseProcess, *, now: bool = False) -> None:
    """End a process and those that it started, after it has closed its recording."""
    if process.pid is None:
        return
    if process.is_alive() and not now:
        process.terminate()
        process.join(_GRACE)
    end_group(process.pid, now=True)
    if process.is_alive():
        process.kill()
    process.join()
