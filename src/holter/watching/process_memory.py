"""Memory of processes, as the operating system counts it: Linux tells it without a library."""

import os
from collections.abc import Sequence

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
_LONGEST = 4096  # bytes of the files that are read


def private_memory(process: int | None = None) -> int | None:
    """Return resident bytes that are neither shared nor of a file, or None if nobody tells."""
    content = _content(f"/proc/{process or 'self'}/statm")
    if content is None:
        return None
    resident, shared = content.split()[1:3]
    return (int(resident) - int(shared)) * _PAGE


def children() -> Sequence[int] | None:
    """Return the processes that this thread has started and that still run, or None."""
    content = _content("/proc/thread-self/children")
    return None if content is None else [int(word) for word in content.split()]


def _content(path: str) -> bytes | None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, AttributeError):  # another system, or the process has ended
        return None
    try:
        return os.read(file, _LONGEST)
    except OSError:
        return None
    finally:
        os.close(file)
