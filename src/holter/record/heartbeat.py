"""The heartbeat of a process in a distributed training: one small file that is overwritten.

It has two lines of one size: what the training did last, and when the process was last seen alive.
A process that is killed leaves both as they were.
"""

import os
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

FILE = "heartbeat"
STACKS = "stacks.txt"
LINE = 64  # bytes
INTERVAL = 1.0  # seconds between two signs of life
_LATE = 3 * INTERVAL  # after which a process of this machine that has no entry is gone
_GONE = 30.0  # seconds after which a process of another machine is taken as gone


class Activity(StrEnum):
    """What a training did last, in the order of a step."""

    STARTED = "started"
    VALIDATED = "validated"
    FETCHED = "fetched"  # a batch
    BACKWARD = "backward"  # began
    GRADIENTS = "gradients"  # backward ended
    UPDATED = "updated"


_ORDER = {activity: place for place, activity in enumerate(Activity)}


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The last signs of life of a process."""

    step: int
    activity: Activity
    wall: float  # of the activity
    process: int
    alive: float  # wall clock of the last sign of life

    @property
    def position(self) -> tuple[int, int]:
        """How far the training had come; of two processes, the lower is behind."""
        return self.step, _ORDER[self.activity]

    @property
    def silence(self) -> float:
        """Seconds that the process lived on after its last activity."""
        return max(self.alive - self.wall, 0.0)

    def is_alive(self, *, here: bool) -> bool:
        """Whether the process still runs, as far as can be told from this machine.

        `here` says that it ran on this machine.
        """
        age = time.time() - self.alive
        if here and age > _LATE and not _exists(self.process):
            return False
        return age < _GONE


def activity_line(step: int, activity: Activity) -> bytes:
    """Return the first line of the file."""
    return f"{step} {activity} {time.time():.3f}".ljust(LINE - 1).encode() + b"\n"


def alive_line() -> bytes:
    """Return the second line of the file."""
    return f"{os.getpid()} {time.time():.3f}".ljust(LINE - 1).encode() + b"\n"


def read_heartbeat(folder: Path) -> Heartbeat | None:
    """Read the heartbeat of one rank; None if there is none, or it cannot be read."""
    try:
        text = (folder / FILE).read_bytes()
        step, activity, wall = text[:LINE].decode().split()
        process, alive = text[LINE:].decode().split()
        return Heartbeat(int(step), Activity(activity), float(wall), int(process), float(alive))
    except (OSError, ValueError):
        return None


def _exists(process: int) -> bool:
    if os.name != "posix":  # elsewhere `os.kill` sends a signal whatever its number
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to another user
        return True
    return True
