"""Steps, loss and alerts in the title of the terminal while a script runs under `holter run`.

The screen belongs to the script: a line of ours between its own, or over its progress bar, would
garble them. The title does not touch the screen. A process of its own reads the run folder, so that
the training is neither slowed nor changed; it ends with the script.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from holter.record import Run
from holter.record.errors import HolterError
from holter.record.findings import Confidence, Finding, Severity
from holter.record.portable import process_exists
from holter.record.signals import LOSS

_EVERY = 1.0  # seconds between two titles
_REST = 20.0  # a run is checked again after so many times the time that a check takes, at least
_SOONEST = 10.0  # and so many seconds
_NICE = 10
_PUSH, _POP = "\033[22;2t", "\033[23;2t"  # keep the title, and bring it back


def is_wanted() -> bool:
    """Return whether standard error is a terminal that may have a title."""
    usual = os.name == "posix" and sys.stderr.isatty()
    return usual and os.environ.get("TERM", "dumb") not in ("dumb", "linux")


def start(folder: Path) -> None:
    """Start the process; it is no child of ours, so that a script may wait for all of its own."""
    command = [sys.executable, "-m", __name__, str(folder.absolute()), str(os.getpid())]
    subprocess.run(  # noqa: S603  (our own module)
        ["/bin/sh", "-c", '"$@" &', "sh", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=False,
        start_new_session=True,
    )


def title_of(run: Run, alert: Finding | None) -> str:
    """Return the title: an alert if there is one, the number of steps, the last loss."""
    parts = [] if alert is None else [f"{alert.rule} since step {alert.onset:,}"]
    parts.append(f"step {run.steps:,}")
    if LOSS in run and (losses := next(iter(run[LOSS].values()), None)) is not None and len(losses):
        parts.append(f"loss {losses.values[-1]:.3g}")
    return f"holter: {' · '.join(parts)}"


def alert_of(run: Run) -> Finding | None:
    """Return the earliest error that is certain: what is likely may pass as training goes on."""
    from holter.diagnosis.engine import check

    errors = [
        finding
        for finding in check(run).at_least(Severity.ERROR)
        if finding.confidence is Confidence.CERTAIN
    ]
    return min(errors, key=lambda finding: finding.onset, default=None)


def follow(folder: Path, is_alive: Callable[[], bool], write: Callable[[str], None]) -> None:
    """Write titles until the run is closed or its process has ended."""
    alert, rested = None, time.monotonic() + _SOONEST
    write(_PUSH)
    while is_alive():
        try:
            run = Run.load(folder)
            if run.finished:
                break
            if time.monotonic() >= rested:
                began = time.monotonic()
                alert = alert_of(run)
                taken = time.monotonic() - began
                rested = began + taken + max(_SOONEST, _REST * taken)
            if is_alive():
                write(f"\033]2;{title_of(run, alert)}\007")
        except (HolterError, OSError):
            pass  # nothing is written yet
        time.sleep(_EVERY)
    write(_POP)


def main() -> None:
    """Follow the run that the arguments name until the process that they name has ended."""
    os.nice(_NICE)
    parent = int(sys.argv[2])

    def is_alive() -> bool:
        return process_exists(parent)

    def write(text: str) -> None:
        os.write(2, text.encode())  # one call: nothing of the script comes in between

    with suppress(OSError, KeyboardInterrupt):  # the terminal was closed
        follow(Path(sys.argv[1]), is_alive, write)


if __name__ == "__main__":
    main()
