"""A task: a command that leaves a folder, run by workers here or on a cluster."""

import math
import shutil
import sys
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from holter.record.journal import read_meta

OUT = "\0out"  # word of a command: the folder to write, which the worker chooses
SENT = "\0sent"  # word of a command: the folder that is sent along, where the worker has it
ATTEMPTS = 3  # at a task whose process was killed
EXIT = "exit"  # file in the folder of a task: the exit code of its command
_ATTEMPT = ".attempt-"


class State(StrEnum):
    """What has become of a task."""

    MISSING = "missing"  # not begun, or begun and lost
    FINISHED = "finished"
    FAILED = "failed"  # by an exception of the script


@dataclass(frozen=True, slots=True)
class Task:
    """A Python command that writes a run to a folder.

    The folder appears when the command has ended, so nothing is taken for finished that is not.
    """

    name: str
    command: tuple[str, ...]  # what follows `python`
    folder: Path
    sent: Path | None = None  # a run that the command reads
    seconds: float | None = None  # after which it is ended

    @property
    def log(self) -> Path:
        """The file with what the command printed."""
        return self.folder.with_name(f"{self.folder.name}.log")

    def words(self, out: Path) -> list[str]:
        """Return the whole command, for a worker that shares this disk."""
        return filled(self.command, out, self.sent)

    def state(self) -> State:
        """Return what has become of the task, as its folder says."""
        return _state_of(self.folder)

    def place(self) -> Path:
        """Return a folder for an attempt; what an attempt that was lost has left is removed."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        for left in self.folder.parent.glob(f"{self.folder.name}{_ATTEMPT}*"):
            shutil.rmtree(left, ignore_errors=True)
        return Path(
            tempfile.mkdtemp(prefix=f"{self.folder.name}{_ATTEMPT}", dir=self.folder.parent)
        )

    def settle(self, place: Path, code: int) -> State:
        """Take over what an attempt has left; the run appears whole or not at all."""
        recorded = place / "run"
        if not recorded.exists():
            return State.FAILED
        (recorded / EXIT).write_text(f"{code}\n")
        shutil.rmtree(self.folder, ignore_errors=True)
        recorded.replace(self.folder)
        return self.state()


class Workers(Protocol):
    """Run tasks: processes of this machine, or a cluster."""

    @property
    def slots(self) -> int:
        """How many tasks run at a time."""

    def run(
        self, tasks: Sequence[Task], *, until: float = math.inf
    ) -> Generator[tuple[Task, State], None, None]:
        """Run tasks and yield each as it ends, until a time of the monotonic clock.

        A task whose process or node is lost begins again. Those that have not ended when the
        iterator is closed, interrupted or out of time are ended.
        """


def finished_in(folder: Path) -> list[Path]:
    """Return the folders of the finished tasks below a folder."""
    folders = sorted(path.parent for path in folder.glob(f"*/{EXIT}"))
    return [each for each in folders if _state_of(each) is State.FINISHED]


def _state_of(folder: Path) -> State:
    try:
        code = int((folder / EXIT).read_text())
    except (OSError, ValueError):
        return State.MISSING
    ended = not code and read_meta(folder).get("status") == "finished"
    return State.FINISHED if ended else State.FAILED


def filled(command: Sequence[str], out: Path, sent: Path | None) -> list[str]:
    """Return a command with the folders of a worker in their places."""
    places = {OUT: str(out), SENT: str(sent)}
    return [sys.executable, *(places.get(word, word) for word in command)]


def last_line(log: Path) -> str:
    """Return the last line that a process printed."""
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].removeprefix("holter: ") if lines else ""
