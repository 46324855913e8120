"""Preflight and replay of a script in processes of their own, written to one run."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from holter.record.notices import tell

if TYPE_CHECKING:
    from holter.scripts.cures.trial import Command


# Experiments that tell most about a training that learned nothing: it has no time for all.
_TELLING = ("label-control", "overfit-batch", "input-control", "data")


def preflight(command: "Command", run: Path, steps: int, seconds: float, *, failed: bool) -> int:
    """Recognise the training step of a script, and run the preflight experiments on it."""
    from holter.lab.experiments import all_experiments
    from holter.lab.running import conduct
    from holter.lab.writing import Lab
    from holter.scripts.recognition import Recognised, recognise

    chosen = [experiment for experiment in all_experiments().values() if experiment.preflight]
    if failed:
        chosen.sort(key=lambda experiment: experiment.name not in _TELLING)

    def then(recognised: Recognised) -> int:
        for note in recognised.notes:
            tell(note)
        with Lab(run) as lab:
            conduct(chosen, recognised.setup, lab)
        return 0

    return recognise(
        command.script,
        command.arguments,
        as_module=command.as_module,
        steps=steps,
        seconds=seconds,
        out=Path(tempfile.mkdtemp()) / "first-steps",
        then=then,
        writes=(run,),
    )


def replay(run: Path) -> int:
    """Replay the first failure that a run has captured, on the script that the user has named."""
    from holter._cli import main

    return main(["try", "replay", "--trust", str(run)])
