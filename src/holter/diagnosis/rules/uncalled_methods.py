"""The source references a method without calling it."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict

_MISTAKES = {
    "uncalled": Mistake(
        "`{code}` references a method without calling it, which has no effect",
        "add the parentheses: `{subject}()`",
    ),
    "uncalled condition": Mistake(
        "`{code}`: `{subject}` is a method, which is always true as a condition",
        "test the mode of the module: `self.training`",
    ),
}


@rule(severity=Severity.ERROR, level=Level.PROCEDURE, needs=(), preview=True)
def uncalled_methods(facts: Facts) -> Iterator[Verdict]:
    """The source references a method without calling it.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports statements that consist
    of the name of a method, such as `optimizer.step`, and modules that test `self.train`.

    ## Why it matters
    Without the call, gradients are not cleared, weights are not updated, or the model stays in
    train mode. A method object is always true: `if self.train:` also takes its branch in
    evaluation.

    ## Example
    ```python
    optimizer.zero_grad    # bad
    optimizer.zero_grad()  # good
    ```

    ## What to do
    Add the parentheses. Test `self.training` for the mode of a module.

    ## When it is wrong
    The name is a property with a side effect.

    ## How to confirm
    - Run `ruff check --select B018` on the script: it reports statements without an effect.
    """
    yield from concluded(uncalled_methods, facts, _MISTAKES)
