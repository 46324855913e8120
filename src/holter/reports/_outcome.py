"""How the run went, in one sentence: the first line of every report."""

from dataclasses import dataclass

from holter.diagnosis.engine import Checkup
from holter.diagnosis.facts.outcome import OutcomeState
from holter.record import Run
from holter.record.findings import Clear, Normal
from holter.reports._numbers import count


@dataclass(frozen=True, slots=True)
class Headline:
    """The state of a run (`learned`, `learned nothing`, `broke at step 812`) and its numbers.

    Without findings `remark` says what that means: `no problem found`.
    """

    state: str
    numbers: str
    remark: str = ""

    @property
    def says(self) -> str:
        """The numbers and the remark in one sentence."""
        return "; ".join(filter(None, (self.numbers, self.remark)))

    def __str__(self) -> str:
        return f"{self.state}. {self.says}"


def headline(run: Run, checkup: Checkup) -> Headline:
    """Return how the run went, from its outcome; where it cannot be judged, why not."""
    outcome = checkup.outcome
    if run.steps == 0 and outcome.state is OutcomeState.BROKE:
        return Headline("broke before the first step", outcome.says)
    if run.steps == 0:
        nothing = "" if checkup.findings else "there is nothing to diagnose"
        return Headline("no training step was recorded", nothing)
    is_unknown = outcome.state is OutcomeState.UNKNOWN
    remark = "" if checkup.findings or outcome.bad else _without_findings(run, checkup)
    return Headline("outcome unknown" if is_unknown else outcome.title, outcome.says, remark)


def _without_findings(run: Run, checkup: Checkup) -> str:
    """Return what the absence of findings means; a log shows little of a training."""
    verdicts: tuple[Clear | Normal, ...] = (*checkup.clear, *checkup.normal)
    examined = {verdict.rule for verdict in verdicts}
    if not examined:
        return "no rule could be applied"
    if run.meta.source is None:
        return "no problem found"
    unseen = len({verdict.rule for verdict in checkup.not_examined} - examined)
    return (
        f"no problem found in what the log holds; {count(unseen, 'rule')} of"
        f" {unseen + len(examined)} not examined"
    )
