"""What Windows and macOS lack of Linux, and what takes its place."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

# Windows opens a descriptor for text unless told otherwise: it would write "\r\n" for "\n".
BINARY: int = vars(os).get("O_BINARY", 0)

_lock = threading.Lock()


def _write_at(file: int, data: bytes, offset: int) -> int:
    with _lock:  # two threads share the position of the file
        os.lseek(file, offset, os.SEEK_SET)
        return os.write(file, data)


write_at: Callable[[int, bytes, int], int] = vars(os).get("pwrite", _write_at)


def process_exists(process: int) -> bool:
    """Return whether a process exists, or True if nobody tells."""
    if os.name == "nt":  # there signal 0 is Ctrl-C
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to another user
        return True
    return True


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if "sched_getaffinity" in vars(os):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def end_group(leader: int, *, now: bool) -> None:
    """Ask a process and all that it started to end, or kill them `now`.

    On Windows, where processes have no groups, the one process is killed.
    """
    with suppress(ProcessLookupError, PermissionError):
        if "killpg" in vars(os):
            os.killpg(leader, signal.SIGKILL if now else signal.SIGTERM)
        else:
            os.kill(leader, signal.SIGTERM)


def lock(file: int) -> None:
    """Lock an open file until it is closed; raise OSError if another process has locked it."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
