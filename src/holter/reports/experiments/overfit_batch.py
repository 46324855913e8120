"""Fits of a few samples: as it is, and with one thing changed at a time."""

from holter.diagnosis.facts.fits import FitTrial, trials
from holter.record import Run
from holter.record.signals import OVERFIT_LOSS
from holter.reports._lines import Line


def lines(run: Run, width: int) -> list[Line]:  # noqa: ARG001  (a table of fixed columns)
    """One line a trial, in the order in which they were made."""
    if OVERFIT_LOSS not in run:
        return []
    made = trials(run)
    column = max(len(each.name) for each in made) + 2
    head = f"  {'trial':<{column}}{'first':>10}{'lowest':>10}{'of the way':>12}{'steps':>7}"
    table: list[Line] = [(("fit of a few samples", "bold"),), ((head, "dim"),)]
    for each in made:
        fit = each.fit
        share = min(max(fit.share, 0.0), 1.0)
        row = f"{fit.start:>10.4g}{fit.best:>10.4g}{share:>12.0%}{fit.steps:>7}"
        table.append(((f"  {each.name:<{column}}{row}  ", ""), _outcome(each)))
    return table


def _outcome(trial: FitTrial) -> tuple[str, str]:
    if trial.fit.fits:
        return "fits", "green"
    if trial.fit.lost:
        return "not finite", "red"
    return ("still falls", "") if trial.fit.falls else ("does not fit", "yellow")
