"""The source uses integer division where it needs a fraction."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "rounded share": Mistake(
        "`{code}`: `{subject}` is rounded down, so the fraction is 0 until the end",
        "divide without rounding: `/` instead of `//`",
    ),
    "rounded frequencies": Mistake(
        "`{code}`: `{subject}` is rounded down, so most frequencies of the embedding are the same",
        "divide without rounding: `/` instead of `//`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def rounded_shares(facts: Facts) -> Iterator[Verdict]:
    """The source uses integer division where it needs a fraction.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports a fraction clamped to 1
    that divides steps or epochs with `//`, as in a warm-up, and a number divided with `//` by its
    own upper bound, such as `t // T` with `t = randint(0, T)`. It also reports rounded exponents of
    sinusoidal embeddings.

    ## Why it matters
    A warm-up or annealed weight that should rise slowly is 0 during all of its steps and then 1. A
    learning rate of 0 wastes these steps; a loss term switches on abruptly.

    ## Example
    ```python
    weight = min(1.0, step // warmup_steps)  # bad
    weight = min(1.0, step / warmup_steps)   # good
    ```

    ## What to do
    Use `/`. In a schedule, count from 1: `(step + 1) / warmup_steps`.

    ## When it is wrong
    A switch from 0 to 1 at that step is intended; `float(step >= warmup_steps)` would express that.

    ## How to confirm
    - Print the fraction, or log the learning rate, over the first steps.
    """
    yield from concluded(rounded_shares, facts, _MISTAKES)
