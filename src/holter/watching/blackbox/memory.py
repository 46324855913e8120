"""How much host memory is free."""

import os
from collections.abc import Callable

_ASSUMED = 4 << 30  # bytes, where the system does not say


def _unknown(name: str) -> int:
    raise ValueError(name)


_ASK: Callable[[str], int] = vars(os).get("sysconf", _unknown)  # Windows has none


def free_memory(read: Callable[[str], int] = _ASK) -> int:
    """Return the free host memory in bytes, or a conservative estimate.

    Linux counts free pages. Where the system does not (macOS), a quarter of the physical memory is
    taken for free; where it does not know that either, 4 GiB.
    """
    page = _value(read, "SC_PAGE_SIZE")
    free = _value(read, "SC_AVPHYS_PAGES")
    if free is not None and page is not None:
        return free * page
    total = _value(read, "SC_PHYS_PAGES")
    if total is not None and page is not None:
        return total * page // 4
    return _ASSUMED


def _value(read: Callable[[str], int], name: str) -> int | None:
    """The value of a name that the system may not have."""
    try:
        value = read(name)
    except (ValueError, OSError):  # an unknown name, and one that is known but not supported
        return None
    return value if value > 0 else None
