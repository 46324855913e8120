"""The source divides with rounding where it needs a share."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "rounded share": Mistake(
        "`{code}`: `{subject}` is rounded down, so that the share is 0 until the end and then 1",
        "divide without rounding: `/` instead of `//`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def rounded_shares(facts: Facts) -> Iterator[Verdict]:
    """The source divides with rounding where it needs a share.

    ## What it does
    Reads the source of the script and of modules beside it. It reports a share that is limited to
    1 and divides steps or epochs with rounding, as in a warm-up.

    ## Why it matters
    A warm-up or an annealed weight that is meant to rise slowly is 0 during all of its steps and
    then 1. A learning rate of 0 wastes these steps; a term of the loss sets in all at once.

    ## Example
    ```python
    weight = min(1.0, step // warmup_steps)  # bad
    weight = min(1.0, step / warmup_steps)   # good
    ```

    ## What to do
    Use `/`. In a schedule, count from 1: `(step + 1) / warmup_steps`.

    ## When it is wrong
    A switch from 0 to 1 at that step is meant; `float(step >= warmup_steps)` says so.

    ## How to confirm
    - Print the share, or log the learning rate, over the first steps.
    """
    yield from concluded(rounded_shares, facts, _MISTAKES)
