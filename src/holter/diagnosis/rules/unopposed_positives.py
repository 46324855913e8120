"""The source computes a binary loss on the positive elements alone."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "positives alone": Mistake(
        "`{code}` selects the elements whose target in `{subject}` is 1: nothing asks for a 0, so"
        " that predicting 1 everywhere is perfect",
        "compute this loss on all elements; mask only terms that have no target elsewhere, such as"
        " that of the box",
    ),
}


@rule(severity=Severity.WARNING, level=Level.ARCHITECTURE, needs=(LOSS,), preview=True)
def unopposed_positives(facts: Facts) -> Iterator[Verdict]:
    """The source computes a binary loss on the positive elements alone.

    ## What it does
    Reads the source of the script and of modules beside it. It reports a binary cross entropy whose
    input and target are both selected by where this target is positive, if no other loss in the
    function is given the same input.

    ## Why it matters
    All targets of such a loss are 1. The loss falls to 0 by predicting 1 everywhere: a detector
    finds an object in every cell, and its precision is that of chance.

    ## Example
    ```python
    loss = binary_cross_entropy_with_logits(logits[y > 0], y[y > 0])   # bad
    loss = binary_cross_entropy_with_logits(logits, y)                 # good
    ```

    ## What to do
    Compute the loss of presence on all elements, with `pos_weight` if positives are rare.

    ## When it is wrong
    Another function computes the loss of the negative elements.

    ## How to confirm
    - Print the mean predicted probability where the target is 0.
    """
    yield from concluded(unopposed_positives, facts, _MISTAKES)
