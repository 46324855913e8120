"""The source names a method without calling it."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict

_MISTAKES = {
    "uncalled": Mistake(
        "`{code}` names a method without calling it, which does nothing",
        "add the parentheses: `{subject}()`",
    ),
    "uncalled condition": Mistake(
        "`{code}`: `{subject}` is a method, which is always true as a condition",
        "test the mode of the module: `self.training`",
    ),
}


@rule(severity=Severity.ERROR, level=Level.PROCEDURE, needs=(), preview=True)
def uncalled_methods(facts: Facts) -> Iterator[Verdict]:
    """The source names a method without calling it.

    ## What it does
    Reads the source of the script and of modules beside it. It reports statements that consist of
    the name of a method, such as `optimizer.step`, and modules that test `self.train`.

    ## Why it matters
    A method that is not called does nothing: gradients are not cleared, weights are not updated, or
    the model stays in train mode. A method is always true: the branch of `if self.train:` is taken
    in evaluation as well.

    ## Example
    ```python
    optimizer.zero_grad    # bad
    optimizer.zero_grad()  # good
    ```

    ## What to do
    Add the parentheses. Test `self.training` to know the mode of a module.

    ## When it is wrong
    The name is a property that works when it is read.

    ## How to confirm
    - Run `ruff check --select B018` on the script: it reports statements without an effect.
    """
    yield from concluded(uncalled_methods, facts, _MISTAKES)
