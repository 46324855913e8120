"""The source writes into arrays that are stored or used as targets."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "written sample": Mistake(
        "`{code}` writes into the stored sample `{subject}`: every epoch changes the data set"
        " further",
        "copy the sample before changing it: `{subject} = {subject}.clone()` (`.copy()` for an"
        " array)",
    ),
    "returned state": Mistake(
        "`{code}` returns the array that the next step overwrites; samples stored before then"
        " show the latest state",
        "return a copy: `self.{subject}.copy()` for an array, `self.{subject}.clone()` for a"
        " tensor",
    ),
    "aliased labels": Mistake(
        "`{code}` creates an alias of a tensor that is then written in place: inputs and labels"
        " change together",
        "copy it: `{code}.clone()`",
    ),
    "shared mask": Mistake(
        "`{code}` creates an alias of a mask that the script then writes to: {subject} change"
        " together",
        "copy it: `{code}.clone()` (`.copy()` for an array)",
    ),
}


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,), preview=True)
def overwritten_samples(facts: Facts) -> Iterator[Verdict]:
    """The source writes into arrays that are stored or used as targets.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports a `__getitem__` that
    writes into the sample that the data set stores, an environment that returns its state array and
    overwrites it in the next step, and labels that alias the inputs when these are masked in place.
    It also reports an aliased mask that is written to.

    ## Why it matters
    Augmentation accumulates from epoch to epoch, until the training samples have little in common
    with the validation samples. All stored states show the latest one. Masked inputs and their
    labels are equal, so nothing is left to predict.

    ## Example
    ```python
    row = self.rows[index]; row += 0.1 * torch.randn(16)  # bad
    row = self.rows[index] + 0.1 * torch.randn(16)        # good
    ```

    ## What to do
    Copy before you write: `.clone()` for a tensor, `.copy()` for an array. Or use an expression
    that creates a new tensor: `row = row * scale` instead of `row *= scale`.

    ## When it is wrong
    The change is idempotent, such as `row.clamp_(0, 1)`. The data set creates its samples on demand
    and stores none.

    ## How to confirm
    - Read the same sample twice and compare: `dataset[0][0]`.
    """
    yield from concluded(overwritten_samples, facts, _MISTAKES)
