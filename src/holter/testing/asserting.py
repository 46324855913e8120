"""Assertions about a training: that it trains, and that it can memorise a batch."""

import tempfile
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holter.diagnosis.checklist import exit_code
from holter.diagnosis.engine import Checkup, check
from holter.record import Run
from holter.record.errors import HolterError
from holter.record.findings import Severity
from holter.reports import text

if TYPE_CHECKING:
    from holter.lab.setup import Setup

_SEVERITIES = {str(severity): severity for severity in Severity}


def assert_trains(
    setup: "Setup | Callable[[], Setup]",
    *,
    steps: int = 100,
    experiments: Iterable[str] = (),
    ignore: Iterable[str] = (),
    fail_on: str = "error",
    folder: Path | None = None,
) -> Checkup:
    """Train a setup for some steps, and raise an AssertionError with the report if it fails.

    It fails if a stable rule reports a finding at least as severe as `fail_on` ("error", "warning"
    or "info"), or if the outcome is bad. `experiments` names experiments to run as well; the one
    name "preflight" stands for all that preflight runs. `ignore` names rules. The setup is left as
    it was.
    """
    if fail_on not in _SEVERITIES:
        raise HolterError(f"fail_on is {fail_on!r}; use one of {', '.join(_SEVERITIES)}.")
    from holter.lab.first_steps import record_first_steps

    made = _made(setup)
    with _place(folder) as place:
        path = Path(place) / "run"
        record_first_steps(made, path, steps)
        chosen = _experiments(experiments)
        if chosen:
            _conduct(chosen, made, path, {})
        return _require(Run.load(path), ignore, _SEVERITIES[fail_on])


def assert_overfits_batch(
    setup: "Setup | Callable[[], Setup]", *, folder: Path | None = None, **options: Any
) -> Checkup:
    """Raise an AssertionError with the report if the model cannot memorise a few samples.

    `options` are those of the experiment overfit-batch, as `steps` and `samples`. The setup is left
    as it was.
    """
    with _place(folder) as place:
        path = Path(place) / "run"
        _conduct(_experiments(["overfit-batch"]), _made(setup), path, {"overfit-batch": options})
        run = Run.load(path)
        checkup = _require(run, (), Severity.ERROR)
        for verdict in checkup.not_examined:
            if verdict.rule == "unfittable-batch":
                raise AssertionError(f"holter: overfit-batch has no result: {verdict.because}.")
        return checkup


def _made(setup: "Setup | Callable[[], Setup]") -> "Setup":
    return setup() if callable(setup) else setup


def _place(folder: Path | None) -> Any:
    return tempfile.TemporaryDirectory() if folder is None else nullcontext(folder)


def _experiments(names: Iterable[str]) -> list[Any]:
    from holter.lab.experiments import all_experiments, named_experiment

    wanted = [names] if isinstance(names, str) else list(names)
    if wanted == ["preflight"]:
        return [experiment for experiment in all_experiments().values() if experiment.preflight]
    return [named_experiment(name) for name in wanted]


def _conduct(chosen: list[Any], setup: "Setup", path: Path, options: dict[str, Any]) -> None:
    from holter.lab.running import conduct
    from holter.lab.writing import Lab
    from holter.record import environment

    with Lab(path, environment=environment.describe()) as lab:
        conduct(chosen, setup, lab, options)


def _require(run: Run, ignore: Iterable[str], severity: Severity) -> Checkup:
    checkup = check(run, ignore=ignore)
    if exit_code(checkup, severity) or checkup.outcome.bad:
        raise AssertionError("\n" + text.render(run, checkup))
    return checkup
