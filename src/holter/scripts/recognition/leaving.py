"""The end of a process in the middle of somebody's script, of which nothing may run any more."""

import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

from holter.record.errors import HolterError
from holter.record.notices import tell

Act = Callable[[], int]
Leave = Callable[[Act], NoReturn]


def leave_process(act: Act) -> NoReturn:
    """Do the last thing, then end the process with its exit code, whatever goes wrong."""
    try:
        code = act()
    except HolterError as error:
        tell(str(error))
        code = 2
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        code = 141
    except BaseException as error:
        if os.environ.get("HOLTER_DEBUG"):
            traceback.print_exc()
        tell(f"internal error, please report it: {type(error).__name__}: {error}")
        code = 2
    for child in multiprocessing.active_children():  # workers of loaders
        child.terminate()
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            continue
    os._exit(code)


class Left(BaseException):
    """Carries the outcome out of a script that may be unwound: for tests, in one process."""

    def __init__(self, act: Act) -> None:
        super().__init__()
        self._code = 0
        self._error: Exception | None = None
        try:
            self._code = act()
        except Exception as error:
            self._error = error

    def outcome(self) -> int:
        """What became of it."""
        if self._error is not None:
            raise self._error
        return self._code


def unwind(act: Act) -> NoReturn:
    """Leave by unwinding the script."""
    raise Left(act)
