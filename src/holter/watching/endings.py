"""How a training ended: what is recorded of the exception that ended it."""

import traceback
from collections.abc import Callable

from holter.record.events import ExceptionRaised, Occurrence
from holter.watching.collectors.roster import Roster
from holter.watching.exhaustion import exhausted
from holter.watching.spoiled import spoiled


def ending(
    error: BaseException | None, roster: Roster, fail: Callable[[str, Exception], None]
) -> tuple[str, list[Occurrence]]:
    """Return the status of a run that ends, and what to record of the error, if there is one."""
    if error is None or _is_exit(error):
        return "finished", []
    status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
    events: list[Occurrence] = [ExceptionRaised(type(error).__name__, str(error), _where(error))]
    if status == "interrupted":
        return status, events
    looks: dict[str, Callable[[], Occurrence | None]] = {
        "looking for what holds memory": lambda: exhausted(error, roster),
        "looking for variables that are not finite": lambda: spoiled(error),
    }
    for task, look in looks.items():
        try:
            seen = look()
        except Exception as failure:
            fail(task, failure)
        else:
            events += [] if seen is None else [seen]
    return status, events


def _is_exit(error: BaseException) -> bool:
    return isinstance(error, SystemExit) and error.code in (None, 0)


def _where(error: BaseException) -> str | None:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None
