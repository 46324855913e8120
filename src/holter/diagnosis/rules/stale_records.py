"""The source does not update, reset, copy or restore a value when it should."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "best never updated": Mistake(
        "`{code}` compares with `{subject}`, which keeps its initial value: the result is the same"
        " in every epoch",
        "store the new value when it is better: `{subject} = value`",
    ),
    "counter never reset": Mistake(
        "`{code}` does not reset `{subject}` to 0 on an improvement: it counts all bad epochs of"
        " the run",
        "reset it: `{subject} = 0`",
    ),
    "exchanged counter": Mistake(
        "`{code}` increases `{subject}` on an improvement, while the other branch resets it:"
        " training stops after improvements",
        "swap the branches",
    ),
    "weights by reference": Mistake(
        "`{code}` stores the weights by reference: `{subject}` changes with every later step",
        "copy them: `copy.deepcopy(model.state_dict())`",
    ),
    "total never reset": Mistake(
        "`{code}` adds to `{subject}`, which is divided by the batches of one interval but never"
        " reset: the mean grows",
        "reset it to 0 after each report",
    ),
    "shared default": Mistake(
        "`{code}` is created once: all calls without `{subject}` share and modify the same object",
        "use `{subject}=None` and create the object in the function",
    ),
    "shadowed variable": Mistake(
        "`{code}` overwrites `{subject}` of the enclosing loop, which is used afterwards",
        "rename the inner variable",
    ),
    "lost on resume": Mistake(
        "`{code}` saves {subject!r}, but the resumed run does not load it",
        "restore it together with the epoch",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def stale_records(facts: Facts) -> Iterator[Verdict]:
    """The source does not update, reset, copy or restore a value when it should.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports a best score that is
    compared but never updated, a patience counter that is never reset, totals that accumulate
    beyond the interval they are divided by, weights stored without a copy, mutable defaults that
    all calls share, loop variables that an inner loop overwrites, and a checkpoint whose best score
    or optimizer is not restored.

    ## Why it matters
    Training itself is not affected, but its results are: the last weights are kept instead of the
    best ones, the reported loss grows with the number of reports, or the run stops too early.

    ## Example
    ```python
    if loss < best: torch.save(model.state_dict(), path)                # bad
    if loss < best: best = loss; torch.save(model.state_dict(), path)   # good
    ```

    ## What to do
    Update the best score where it is compared, reset totals after each report, and copy stored
    weights: `copy.deepcopy(model.state_dict())`.

    ## When it is wrong
    A total or a counter is intended for the whole run.

    ## How to confirm
    - Print the best score, the counter and the total at the end of each epoch.
    """
    yield from concluded(stale_records, facts, _MISTAKES)
