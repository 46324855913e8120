"""Run experiments on a setup; the training is restored after each."""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from holter.lab.experiments import Experiment, named_experiment
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Setup
from holter.lab.state import kept
from holter.lab.writing import Lab
from holter.record import Run, environment
from holter.record.errors import HolterError
from holter.record.events import ExperimentFailed, ExperimentMade, NotApplicable
from holter.record.folders import new_folder, require_free

_LONGEST = 160  # characters of an error in a report

Options = Mapping[str, Mapping[str, Any]]  # experiment -> option -> value


def run(
    name: str, setup: Setup, path: str | Path | None = None, *, quiet: bool = True, **options: Any
) -> Run:
    """Run one experiment and return the run it wrote, by default to a folder in `holter-runs`.

    Weights, gradients, optimizers, random numbers and modes are restored afterwards.
    """
    chosen = named_experiment(name)
    for option in options:
        if option not in chosen.options:
            raise HolterError(
                f"The experiment {name} has no option {option!r};"
                f" it has {', '.join(chosen.options) or 'none'}."
            )
    folder = Path(path) if path is not None else new_folder(name)
    require_free(folder, 0)
    with Lab(folder, environment=environment.describe(), quiet=quiet) as lab:
        conduct([chosen], setup, lab, {name: options})
    return Run.load(folder)


def conduct(
    experiments: Iterable[Experiment], setup: Setup, lab: Lab, options: Options | None = None
) -> None:
    """Run experiments one after another; an internal error is recorded, the others go on."""
    chosen = list(experiments)
    for number, experiment in enumerate(chosen, 1):
        lab.begin(f"experiment {number}/{len(chosen)}: {experiment.name}")
        began = time.perf_counter()
        signals = tuple(signal.name for signal in experiment.emits)
        try:
            with setup.aside(), kept(setup):
                experiment.function(setup, lab, **(options or {}).get(experiment.name, {}))
        except InapplicableError as reason:
            lab.event(NotApplicable(experiment.name, str(reason), signals))
        except Exception as error:
            lab.event(ExperimentFailed(experiment.name, _in_a_line(error), signals))
        lab.event(ExperimentMade(experiment.name, time.perf_counter() - began))


def _in_a_line(error: Exception) -> str:
    """Return an exception as one line of bounded length: torch's may fill a screen."""
    message = str(error).strip().partition("\n")[0]
    message = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}..."
    return f"{type(error).__name__}: {message}"
