"""Running experiments: after each the training is as it was before."""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from holter.lab.experiments import Experiment, InapplicableError, named_experiment
from holter.lab.lab import Lab
from holter.lab.setup import Setup
from holter.lab.state import kept
from holter.record import Run, environment
from holter.record.errors import HolterError
from holter.record.events import ExperimentMade, NotApplicable
from holter.record.folders import new_folder, require_free

Options = Mapping[str, Mapping[str, Any]]  # experiment -> option -> value


def run(
    name: str, setup: Setup, path: str | Path | None = None, *, quiet: bool = True, **options: Any
) -> Run:
    """Make one experiment and return the run it wrote; by default to a folder in `holter-runs`.

    Whatever the experiment does, the training is afterwards as it was before: weights, gradients,
    optimizer, random numbers, modes.
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
    """Make experiments one after another; one that fails is told of, and the others go on."""
    for each in experiments:
        began = time.perf_counter()
        try:
            with setup.aside(), kept(setup):
                each.function(setup, lab, **(options or {}).get(each.name, {}))
        except InapplicableError as reason:
            _decline(lab, each, str(reason))
        except Exception as error:
            _decline(lab, each, f"it failed: {type(error).__name__}: {error}")
        lab.event(ExperimentMade(each.name, time.perf_counter() - began))


def _decline(lab: Lab, each: Experiment, why: str) -> None:
    signals = tuple(signal.name for signal in each.emits)
    lab.event(NotApplicable(each.name, why, signals))
