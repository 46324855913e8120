"""The source tries to freeze parameters but freezes none."""

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
    "nothing frozen": Mistake(
        "`{code}` turns `requires_grad` on although it is already on: nothing in the source turns"
        " it off, so all parameters are trained",
        "turn it off for all others: `p.requires_grad_(name in trainable)` for every parameter",
    ),
    "training teacher": Mistake(
        "`{code}` puts a fixed model into training mode: dropout and batch statistics change the"
        " outputs of `{subject}`",
        "keep it in evaluation mode: `{subject}.eval()`",
    ),
    "unprepared teacher": Mistake(
        "`{code}` creates a model in training mode and loads its weights, but nothing calls"
        " `{subject}.eval()`: dropout and batch statistics change its outputs",
        "call `{subject}.eval()` after loading the weights",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def ineffective_freeze(facts: Facts) -> Iterator[Verdict]:
    """The source tries to freeze parameters but freezes none.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports assignments to
    `requires_grad` of a module, and a loop that sets it to True for some parameters while nothing
    sets it to False, if the optimizer receives the parameters that require a gradient. It also
    reports a fixed distillation teacher in training mode.

    ## Why it matters
    Only tensors have `requires_grad`. On a module the assignment creates an attribute without
    effect. Parameters are created with True, so setting it to True selects nothing. A pretrained
    backbone is trained further, and its features are destroyed by the large gradients of a new
    head.

    ## Example
    ```python
    model.backbone.requires_grad = False   # bad
    model.backbone.requires_grad_(False)   # good
    ```

    ## What to do
    Call `requires_grad_(False)`, which sets the flag of every parameter.

    ## When it is wrong
    The class of the module defines `requires_grad` as a property. A library freezes the parameters.

    ## How to confirm
    - Print `[p.requires_grad for p in model.backbone.parameters()]` after the statement.
    """
    yield from concluded(ineffective_freeze, facts, _MISTAKES)
