"""The source uses integer division where it needs a fraction."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "rounded share": Mistake(
        "`{code}`: `{subject}` is rounded down, so that the share is 0 until the end",
        "divide without rounding: `/` instead of `//`",
    ),
    "rounded frequencies": Mistake(
        "`{code}`: `{subject}` is rounded down, so that most frequencies of the embedding are the"
        " same",
        "divide without rounding: `/` instead of `//`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def rounded_shares(facts: Facts) -> Iterator[Verdict]:
    """The source uses integer division where it needs a fraction.

    ## What it does
    Reads the source of the script and of modules beside it. It reports a share that is limited to
    1 and divides steps or epochs with rounding, as in a warm-up, and a number that is divided with
    rounding by its own upper bound, such as `t // T` of `t = randint(0, T)`. It also reports the
    exponents of sinusoidal embeddings, if they are rounded.

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
