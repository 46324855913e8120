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
from holter.record.events import ExperimentMade, NotApplicable
from holter.record.folders import new_folder, require_free

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
    """Run experiments one after another; a failure is recorded and does not stop the others."""
    chosen = list(experiments)
    for number, experiment in enumerate(chosen, 1):
        lab.begin(f"experiment {number}/{len(chosen)}: {experiment.name}")
        began = time.perf_counter()
        try:
            with setup.aside(), kept(setup):
                experiment.function(setup, lab, **(options or {}).get(experiment.name, {}))
        except InapplicableError as reason:
            _decline(lab, experiment, str(reason))
        except Exception as error:
            _decline(lab, experiment, f"it failed: {type(error).__name__}: {error}")
        lab.event(ExperimentMade(experiment.name, time.perf_counter() - began))


def _decline(lab: Lab, chosen: Experiment, why: str) -> None:
    signals = tuple(signal.name for signal in chosen.emits)
    lab.event(NotApplicable(chosen.name, why, signals))
