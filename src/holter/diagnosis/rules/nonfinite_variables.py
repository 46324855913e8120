"""An exception was raised in a function whose variables hold NaN or infinity."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.ending import exception_line
from holter.diagnosis.rule import rule
from holter.record.events import VariablesNonfinite
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS


@rule(severity=Severity.ERROR, level=Level.DATA, needs=(), preview=True)
def nonfinite_variables(facts: Facts) -> Iterator[Verdict]:
    """An exception was raised in a function whose variables hold NaN or infinity.

    ## What it does
    Looks at the tensors in the script function in which an exception ended the training. It names
    those with NaN or positive infinity, in order of assignment.

    ## Why it matters
    Many functions validate their arguments and raise an error that does not mention NaN: "all
    elements of input should be between 0 and 1", "expected parameter to satisfy the constraint".
    The cause is the operation that computed the first of these tensors.

    ## Example
    ```python
    x = spectrum.log()                    # bad
    x = spectrum.clamp_min(1e-10).log()   # good
    ```

    ## What to do
    Find the operation that produced the first named variable, and guard that operation or clean its
    input data.

    ## When it is wrong
    A variable that may hold infinity, such as the best loss so far, and an unrelated error.

    ## How to confirm
    - Add `assert torch.isfinite(x).all()` after each line that assigns one of them.
    """
    raised, spoiled = exception_line(facts.run), facts.run.events_of(VariablesNonfinite)
    if raised is None:
        yield nonfinite_variables.clear("no exception ended the training")
        return
    if not spoiled:
        yield nonfinite_variables.clear("all tensors around the line that raised are finite")
        return
    what, step = spoiled[-1].what, raised[0]
    names = ", ".join(f"`{name}`" for name in what.names)
    yield nonfinite_variables.finding(
        f"{names} {'hold' if len(what.names) > 1 else 'holds'} NaN or infinity at {what.where},"
        f" which raised {raised[1]}",
        confidence=Confidence.LIKELY,
        onset=step,
        evidence=(Evidence(LOSS, (step, step), f"the training ended at {what.where}"),),
        fix=f"find the operation that made `{what.names[0]}` not finite, and guard it:"
        f" `assert torch.isfinite({what.names[0]}).all()` after each line that assigns it",
    )
