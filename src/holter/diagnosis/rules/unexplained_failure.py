"""The training failed, and no other rule reports why."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import was_asked_for
from holter.diagnosis.facts.ending import exception_line
from holter.diagnosis.facts.outcome import Outcome, OutcomeState
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_LITTLE = 0.1  # of the way from chance to always right


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(LOSS,),
    symptom=True,
)
def unexplained_failure(facts: Facts) -> Iterator[Verdict]:
    """The training failed, and no other rule reports why.

    ## What it does
    Takes the outcome of the run: it learned nothing, diverged, broke, collapsed, learned only the
    training data, or ended before it reached the level of a constant prediction. If no finding
    explains this failure, the failure itself is reported, with an unknown cause. It is a hint where
    the best constant prediction is unknown, or the loss was still falling towards it.

    ## Why it matters
    The final model is no better than the initial one, or than a constant prediction, although
    everything holter measures looks normal. The cause is outside of that: the meaning of the
    labels, the order of operations, code outside the training step.

    ## Example
    ```python
    anchor = net(x[torch.randperm(len(x))])   # bad
    anchor = net(x)                           # good
    ```

    ## What to do
    Print ten inputs with their targets as the loss receives them. Train on one small batch: if the
    model cannot memorise it, the model or the loop is at fault, otherwise the data. Change one
    thing at a time, the learning rate first.

    ## When it is wrong
    Tasks with a long plateau before the first drop. Fine-tuning of a model that has converged, with
    a loss whose best constant prediction is unknown.

    ## How to confirm
    - Run `holter doctor train.py`: it changes one thing at a time and trains again until the run
      learns.
    - Train on one batch for 200 steps: a working setup memorises it.
    """
    outcome = facts.run_outcome
    if exception_line(facts.run) is not None:
        yield unexplained_failure.not_examined("an exception ended the training")
    elif outcome.state is OutcomeState.UNKNOWN:
        yield unexplained_failure.not_examined(outcome.says)
    elif outcome.state is OutcomeState.FALLING and was_asked_for(facts.run):
        yield unexplained_failure.not_examined(
            "`holter try` records the beginning of a training, and the loss is still falling"
        )
    elif outcome.state is OutcomeState.FALLING and _is_at_chance(outcome):
        yield unexplained_failure.finding(
            f"the training ended before it learned anything: {outcome.says}",
            confidence=Confidence.HINT,
            severity=Severity.WARNING,
            onset=outcome.steps[0],
            evidence=(outcome.evidence,),
            fix="train longer, or with a larger learning rate: `holter try lr-range` measures"
            " which rates work",
        )
    elif not outcome.bad:
        yield unexplained_failure.clear(outcome.says)
    else:
        yield unexplained_failure.finding(
            f"{outcome.title}: {outcome.says}",
            confidence=Confidence.LIKELY if outcome.sure else Confidence.HINT,
            severity=None if outcome.sure else Severity.WARNING,
            onset=outcome.onset or outcome.steps[0],
            evidence=(outcome.evidence,),
            fix="print a few inputs next to their targets; then train on one small batch, and with"
            " a tenth of the learning rate",
        )


def _is_at_chance(outcome: Outcome) -> bool:
    """Whether the accuracy, where there is one, says no more than the loss."""
    accuracy, chance = outcome.accuracy, outcome.chance_accuracy
    return accuracy is None or chance is None or accuracy <= chance + _LITTLE * (1 - chance)
