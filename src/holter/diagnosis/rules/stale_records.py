"""The source carries over values that it should update, reset, copy or restore."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "best never updated": Mistake(
        "`{code}` compares with `{subject}`, which keeps its initial value: every epoch gives"
        " the same answer",
        "store the new value where it is better: `{subject} = value`",
    ),
    "counter never reset": Mistake(
        "`{code}` finds an improvement and does not set `{subject}` to 0: it counts all bad"
        " epochs of the run",
        "reset it: `{subject} = 0`",
    ),
    "exchanged counter": Mistake(
        "`{code}` finds an improvement and increases `{subject}`, which the other branch sets to"
        " 0: training stops after improvements",
        "exchange the branches",
    ),
    "weights by reference": Mistake(
        "`{code}` keeps the weights by reference: `{subject}` changes with every later step",
        "copy them: `copy.deepcopy(model.state_dict())`",
    ),
    "total never reset": Mistake(
        "`{code}` adds to `{subject}`, which is divided by the batches of one interval and never"
        " set to 0: the mean grows",
        "set it to 0 after each report",
    ),
    "shared default": Mistake(
        "`{code}` is created once: all calls that leave `{subject}` out add to the same object",
        "use `{subject}=None` and create the object in the function",
    ),
    "shadowed variable": Mistake(
        "`{code}` overwrites `{subject}` of the loop around it, which is used afterwards",
        "give the inner variable another name",
    ),
    "lost on resume": Mistake(
        "`{code}` saves {subject!r}, and the resumed run does not read it",
        "restore it where the epoch is restored",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def stale_records(facts: Facts) -> Iterator[Verdict]:
    """The source carries over values that it should update, reset, copy or restore.

    ## What it does
    Reads the source of the script and of modules beside it. It reports a best score that is
    compared and never updated, a counter of epochs without improvement that is never reset, totals
    that grow over the interval they are divided by, weights that are kept without a copy, mutable
    defaults that all calls share, loop variables that an inner loop overwrites, and a checkpoint
    whose best score or optimizer is not restored.

    ## Why it matters
    Training itself is not affected, but what is kept and reported is: the last weights instead of
    the best ones, a loss that grows with the number of reports, a run that stops too early.

    ## Example
    ```python
    if loss < best: torch.save(model.state_dict(), path)                # bad
    if loss < best: best = loss; torch.save(model.state_dict(), path)   # good
    ```

    ## What to do
    Update the best score where it is compared, reset totals after each report, and copy weights
    that are kept: `copy.deepcopy(model.state_dict())`.

    ## When it is wrong
    A total or a counter is meant over the whole run.

    ## How to confirm
    - Print the best score, the counter and the total at the end of each epoch.
    """
    yield from concluded(stale_records, facts, _MISTAKES)
