"""The source sets `requires_grad` on a module, which freezes nothing."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "ineffective freeze": Mistake(
        "`{code}` sets an attribute that torch does not read: the parameters of `{subject}` are"
        " trained",
        "freeze the parameters: `{subject}.requires_grad_(False)`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def ineffective_freeze(facts: Facts) -> Iterator[Verdict]:
    """The source sets `requires_grad` on a module, which freezes nothing.

    ## What it does
    Reads the source of the script and of modules beside it. It reports assignments to
    `requires_grad` of a module.

    ## Why it matters
    Only tensors have `requires_grad`. On a module the assignment creates an attribute without an
    effect: a pretrained backbone is trained further, and its features are destroyed by the large
    gradients of a new head.

    ## Example
    ```python
    model.backbone.requires_grad = False   # bad
    model.backbone.requires_grad_(False)   # good
    ```

    ## What to do
    Call `requires_grad_(False)`, which sets the flag of every parameter.

    ## When it is wrong
    The class of the module defines `requires_grad` as a property.

    ## How to confirm
    - Print `[p.requires_grad for p in model.backbone.parameters()]` after the statement.
    """
    yield from concluded(ineffective_freeze, facts, _MISTAKES)
