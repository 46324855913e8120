"""The exact commands of the next experiments on a run."""

import re
import shlex
from dataclasses import dataclass

from holter.diagnosis.differential import Diagnosis
from holter.record import Run

_COMMAND = re.compile(r"`(holter (?:try|doctor|run|check)[^`]*)`")
_SCRIPT = "train.py"  # stands for the script on the pages of rules


@dataclass(frozen=True, slots=True)
class NextCommand:
    """A command to copy, and what it tells."""

    command: str
    why: str


def next_commands(run: Run, diagnosis: Diagnosis, *, bad: bool) -> list[NextCommand]:
    """Return the experiments that confirm the diagnosis or find the cause, cheapest first."""
    script, commands = run.meta.environment.script, []
    for experiment in diagnosis.experiments:
        match = _COMMAND.search(experiment)
        if match is not None and (command := _filled(match[1], run, script)) is not None:
            commands.append(NextCommand(command, experiment.replace("`", "")))
    if script is None:
        return _unique(commands)
    if bad:
        doctor = "run the script again, examine it, and prove the cause by changing one thing"
        commands.append(NextCommand(f"holter doctor {script}", doctor))
    elif diagnosis.leading is None:
        preflight = "test data, model and training step before a longer run"
        commands.append(NextCommand(f"holter try preflight {script}", preflight))
    return _unique(commands)


def working_directory(run: Run) -> str | None:
    """Return the command that changes to the folder in which the script ran."""
    folder = run.meta.environment.folder
    return None if not folder else f"cd {shlex.quote(folder)}"


def _filled(command: str, run: Run, script: str | None) -> str | None:
    """Return the command of a rule's page with this run and its script, or None without one."""
    path = "RUN" if run.path is None else shlex.quote(str(run.path))
    if run.path is not None and str(run.path) in command:  # as the advice of a replay has it
        return command.replace(str(run.path), path)
    words = command.split()
    if words[1:3] == ["try", "replay"] and "RUN" not in words:
        words.append("RUN")
    if "RUN" in words:
        return " ".join(path if word == "RUN" else word for word in words)
    if script is None or script in command:
        return command if script is not None else None
    rest = [word for word in words if word not in (_SCRIPT, "SCRIPT")]
    return " ".join([*rest, script])


def _unique(commands: list[NextCommand]) -> list[NextCommand]:
    return list({each.command: each for each in reversed(commands)}.values())[::-1]
