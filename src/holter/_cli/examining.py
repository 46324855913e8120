"""Preflight and replay of a script in processes of their own, written to one run."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from holter.record.events import ExperimentMade, NotApplicable
from holter.record.notices import tell

if TYPE_CHECKING:
    from holter.record import Run
    from holter.scripts.cures.trial import Command


# Experiments that tell most about a training that learned nothing: it has no time for all.
_TELLING = ("label-control", "overfit-batch", "input-control", "data")


def preflight(command: "Command", run: Path, steps: int, seconds: float, *, failed: bool) -> int:
    """Recognise the training step of a script, and run the preflight experiments on it.

    Those that the run holds already, on what the script has left, are not made again.
    """
    from holter.lab.experiments import all_experiments
    from holter.lab.running import conduct
    from holter.lab.writing import Lab
    from holter.record import Run
    from holter.scripts.recognition import Recognised, recognise

    made = _made(Run.load(run))
    chosen = [e for e in all_experiments().values() if e.preflight and e.name not in made]
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


def _made(run: "Run") -> set[str]:
    """Return the experiments that have given a run their readings."""
    made = {event.what.experiment for event in run.events_of(ExperimentMade)}
    return made - {event.what.experiment for event in run.events_of(NotApplicable)}


def replay(run: Path) -> int:
    """Replay the first failure that a run has captured, on the script that the user has named."""
    from holter._cli import main

    return main(["try", "replay", "--trust", str(run)])
