"""The source uses an iterator twice."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "exhausted": Mistake(
        "`{code}` uses the iterator `{subject}` again: an earlier use has consumed it, and this one"
        " gets no parameters",
        "keep the parameters in a list: `{subject} = list(model.parameters())`",
    ),
    "consumed in the first epoch": Mistake(
        "`{code}` iterates over `{subject}` in every iteration of a loop, but it was created once:"
        " the first pass consumes it, and the others get nothing",
        "create it inside the loop over epochs",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def exhausted_iterators(facts: Facts) -> Iterator[Verdict]:
    """The source uses an iterator twice.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports a name that holds an
    iterator over parameters, such as `model.parameters()`, and is used twice or in a loop. It also
    reports batches from a `zip`, `map` or generator that is created once, before the loop over
    epochs.

    ## Why it matters
    An iterator can be consumed only once. The second use gets nothing: `clip_grad_norm_` clips
    nothing, a second optimizer has no parameters, a weight average does not change. All epochs
    after the first have no batches.

    ## Example
    ```python
    params = model.parameters()        # bad
    params = list(model.parameters())  # good
    ```

    ## What to do
    Put the parameters into a list, or call `model.parameters()` at every use.

    ## When it is wrong
    `parameters()` is a method of another library that returns a list.

    ## How to confirm
    - Print `len(list(params))` immediately before the second use: it is 0.
    """
    yield from concluded(exhausted_iterators, facts, _MISTAKES)
