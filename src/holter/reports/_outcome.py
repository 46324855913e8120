"""How the run went, in one sentence: the first line of every report."""

from dataclasses import dataclass

import numpy as np

from holter.diagnosis.engine import Checkup
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.outcome import OutcomeState, verdict_of
from holter.record import Run
from holter.record.signals import LOSS
from holter.reports._facts import exception_line
from holter.reports._numbers import number


@dataclass(frozen=True, slots=True)
class Headline:
    """The state of a run (`learned`, `learned nothing`, `broke at step 812`) and its numbers.

    Without findings `remark` says what that means: `no problem found`.
    """

    state: str
    numbers: str
    remark: str = ""
    is_bad: bool = False

    @property
    def says(self) -> str:
        """The numbers and the remark in one sentence."""
        return "; ".join(filter(None, (self.numbers, self.remark)))

    def __str__(self) -> str:
        return f"{self.state}. {self.says}"


def headline(run: Run, checkup: Checkup) -> Headline:
    """Return how the run went, from the outcome fact; where it cannot be judged, why not."""
    if run.steps == 0:
        return Headline("no training step was recorded", "there is nothing to judge")
    raised = exception_line(run)
    if raised is not None:
        return Headline(f"broke at step {raised[0]}", raised[1], is_bad=True)
    clear = "" if checkup.findings else _without_findings(checkup)
    facts = Facts(run)
    outcome = verdict_of(facts)
    if outcome.state is OutcomeState.UNKNOWN:
        return Headline("outcome unknown", f"{_loss(run)}{outcome.says}", clear)
    if outcome.bad:
        unexplained = "" if checkup.findings else "no rule found a cause"
        at = "" if outcome.onset is None else f" at step {outcome.onset}"
        return Headline(f"{outcome.state}{at}", outcome.says, unexplained, is_bad=True)
    return Headline(str(outcome.state), f"{outcome.says}{_validation(facts)}", clear)


def _without_findings(checkup: Checkup) -> str:
    examined = checkup.clear or checkup.normal
    return "no problem found" if examined else "no rule could be applied"


def _loss(run: Run) -> str:
    """Return the first and the last loss of a run that has one loss."""
    if LOSS not in run or len(run[LOSS]) != 1:
        return ""
    (series,) = run[LOSS].values()
    values = series.values[np.isfinite(series.values)]
    if not len(values):
        return ""
    return f"loss {number(float(values[0]))} → {number(float(values[-1]))}; "


def _validation(facts: Facts) -> str:
    """Return the last loss of the pass that is the validation."""
    evaluation = facts.evaluation
    if isinstance(evaluation, str):
        return ""
    values = evaluation.losses.values[np.isfinite(evaluation.losses.values)]
    return f", validation {number(float(values[-1]))}" if len(values) else ""
