"""Fits of a few samples: the setup unchanged, then with one change at a time."""

from holter.diagnosis.facts.fits import FitTrial, trials
from holter.record import Run
from holter.record.signals import OVERFIT_LOSS
from holter.reports.experiments import ResultTable


def results(run: Run) -> list[ResultTable]:
    """Return one row per fit, in the order in which they were made."""
    if OVERFIT_LOSS not in run:
        return []
    rows = tuple(
        (
            trial.name,
            trial.fit.start,
            trial.fit.best,
            round(100 * min(max(trial.fit.share, 0.0), 1.0)),
            trial.fit.steps,
            _result(trial),
        )
        for trial in trials(run)
    )
    columns = ("change", "first loss", "lowest loss", "% of the way", "steps", "result")
    return [ResultTable("overfit-batch", "fit of a few samples", columns, rows)]


def _result(trial: FitTrial) -> str:
    if trial.fit.fits:
        return "fits"
    if trial.fit.lost:
        return "not finite"
    return "still falls" if trial.fit.falls else "does not fit"
