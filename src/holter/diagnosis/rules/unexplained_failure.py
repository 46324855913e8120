"""The training failed, and no other rule reports why."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.ending import exception_line
from holter.diagnosis.facts.outcome import OutcomeState
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(LOSS,),
    symptom=True,
)
def unexplained_failure(facts: Facts) -> Iterator[Verdict]:
    """The training failed, and no other rule reports why.

    ## What it does
    Takes the outcome of the run: it learned nothing, diverged, broke, collapsed, or learned only
    the training data. If no finding is this failure or explains it, the failure itself is reported,
    with an unknown cause. It is a hint where the best constant prediction is unknown.

    ## Why it matters
    The weights at the end are no better than those at the start, or than a constant prediction,
    although nothing that holter measures is odd. The cause lies where holter does not look: in
    what the labels mean, in the order of operations, in code outside the training step.

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
    elif not outcome.bad:
        yield unexplained_failure.clear(outcome.says)
    else:
        yield unexplained_failure.finding(
            f"{outcome.title}: {outcome.says}",
            confidence=Confidence.LIKELY if outcome.sure else Confidence.HINT,
            severity=None if outcome.sure else Severity.WARNING,
            onset=outcome.onset or outcome.steps[0],
            evidence=(outcome.evidence,),
            fix="print a few inputs beside their targets; then train on one small batch, and with a"
            " tenth of the learning rate",
        )
