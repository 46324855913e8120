"""The heartbeat of a process in a distributed training: one small file that is overwritten.

It has two lines of one size: what the training did last, and when the process was last seen alive.
A process that is killed leaves both as they were.
"""

import os
import platform
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from holter.record.portable import process_exists

FILE = "heartbeat"
STACKS = "stacks.txt"
LINE = 64  # bytes
INTERVAL = 1.0  # seconds between two signs of life
_GONE = 90.0  # seconds after which a process that cannot be looked up is gone: disks are late


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
    space: int  # in which the number of the process means something; 0 if unknown
    alive: float  # wall clock of the last sign of life

    @property
    def position(self) -> tuple[int, int]:
        """How far the training had come; of two processes, the lower is behind."""
        return self.step, _ORDER[self.activity]

    @property
    def silence(self) -> float:
        """Seconds that the process lived on after its last activity."""
        return max(self.alive - self.wall, 0.0)

    def is_alive(self, host: str) -> bool:
        """Whether the process, which ran on `host`, still runs, as far as can be told from here."""
        here = host == platform.node() and self.space == _space() != 0
        if here and not process_exists(self.process):
            return False
        return time.time() - self.alive < _GONE


def activity_line(step: int, activity: Activity) -> bytes:
    """Return the first line of the file."""
    return f"{step} {activity} {time.time():.3f}".ljust(LINE - 1).encode() + b"\n"


def alive_line() -> bytes:
    """Return the second line of the file."""
    return f"{os.getpid()} {_space()} {time.time():.3f}".ljust(LINE - 1).encode() + b"\n"


def read_heartbeat(folder: Path) -> Heartbeat | None:
    """Read the heartbeat of one rank; None if there is none, or it cannot be read."""
    try:
        text = (folder / FILE).read_bytes()
        step, activity, wall = text[:LINE].decode().split()
        process, space, alive = text[LINE:].decode().split()
        return Heartbeat(
            int(step), Activity(activity), float(wall), int(process), int(space), float(alive)
        )
    except (OSError, ValueError):
        return None


def _space() -> int:
    """Return the number of this process's PID namespace: containers have their own."""
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return 0
