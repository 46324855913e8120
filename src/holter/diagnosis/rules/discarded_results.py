"""The source discards a result that a later statement needs."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "discarded": Mistake(
        "`{code}` returns a new tensor that is discarded; the tensor itself does not change",
        "assign the result, `x = x.clamp(-5, 5)`, or use the in-place method, `x.clamp_(-5, 5)`",
        Confidence.HINT,
    ),
    "dropped state": Mistake(
        "`{code}` discards the new state: every turn of the loop starts from the same `{subject}`",
        "keep the state that the call returns: `out, {subject} = ...`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def discarded_results(facts: Facts) -> Iterator[Verdict]:
    """The source discards a result that a later statement needs.

    ## What it does
    Reads the source of the script and of modules beside it. It reports calls of functions without
    side effects whose result is not used, such as `logits.clamp(-5, 5)` as a statement. It reports
    loops over time that discard the new state of a recurrent cell.

    ## Why it matters
    The tensor is not clamped, masked or reshaped, although the source says so. A cell that starts
    every step from the same state has no memory.

    ## Example
    ```python
    out, _ = cell(x[t], h)  # bad
    out, h = cell(x[t], h)  # good
    ```

    ## What to do
    Assign the result to the name that later statements use.

    ## When it is wrong
    The call measures time, or each step starts from the same state on purpose.

    ## How to confirm
    - Print the tensor, or the state, before and after the statement.
    """
    yield from concluded(discarded_results, facts, _MISTAKES)
