"""The exact command to run after a report, for programs and agents."""

import shlex

from holter.diagnosis.differential import diagnose
from holter.diagnosis.engine import Checkup
from holter.record import Run


def next_command(run: Run, checkup: Checkup) -> str | None:
    """Return the command that tells the most now, or None where nothing is left to find out.

    The replay of a captured failure comes first. A log is recorded again by its script; a cause
    that is unknown or not confirmed is looked for by the doctor.
    """
    if checkup.captured is not None and run.path is not None:
        return f"holter try replay {shlex.quote(str(run.path))}"
    if run.meta.source is not None:
        return "holter run train.py"
    diagnosis = diagnose(checkup)
    script = checkup.script
    if diagnosis.leading is None or diagnosis.leading.confirmed_by or script is None:
        return None
    return f"holter doctor {script}"
