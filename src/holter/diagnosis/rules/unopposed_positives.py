"""The source computes a binary loss on positive elements only."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "positives alone": Mistake(
        "`{code}` selects only the elements whose target in `{subject}` is 1: predicting 1"
        " everywhere is optimal",
        "compute this loss on all elements; mask only terms without targets elsewhere, such as box"
        " regression",
    ),
}


@rule(severity=Severity.WARNING, level=Level.ARCHITECTURE, needs=(LOSS,), preview=True)
def unopposed_positives(facts: Facts) -> Iterator[Verdict]:
    """The source computes a binary loss on positive elements only.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports a binary cross entropy
    whose input and target are both restricted to positive targets, if no other loss in the function
    uses the same input.

    ## Why it matters
    All targets of such a loss are 1. Predicting 1 everywhere minimises it: a detector finds an
    object in every cell, with chance-level precision.

    ## Example
    ```python
    loss = binary_cross_entropy_with_logits(logits[y > 0], y[y > 0])   # bad
    loss = binary_cross_entropy_with_logits(logits, y)                 # good
    ```

    ## What to do
    Compute the objectness loss on all elements, with `pos_weight` if positives are rare.

    ## When it is wrong
    Another function computes the loss of the negative elements.

    ## How to confirm
    - Print the mean predicted probability where the target is 0.
    """
    yield from concluded(unopposed_positives, facts, _MISTAKES)
