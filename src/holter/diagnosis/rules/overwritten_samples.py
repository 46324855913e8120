"""The source writes into arrays that are stored or used as targets."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "written sample": Mistake(
        "`{code}` writes into `{subject}`, which is the stored sample: each epoch changes the"
        " data set further",
        "copy the sample before it is changed: `{subject} = {subject}.clone()` (`.copy()` for"
        " an array)",
    ),
    "returned state": Mistake(
        "`{code}` returns the array that the next step overwrites; samples stored before then"
        " show the latest state",
        "return a copy: `self.{subject}.copy()` for an array, `self.{subject}.clone()` for a"
        " tensor",
    ),
    "aliased labels": Mistake(
        "`{code}` makes a second name of one tensor, which is then written to in place:"
        " inputs and labels change together",
        "copy it: `{code}.clone()`",
    ),
    "shared mask": Mistake(
        "`{code}` makes a second name of one mask, and the script then writes to it:"
        " {subject} change together",
        "copy it: `{code}.clone()` (`.copy()` for an array)",
    ),
}


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,), preview=True)
def overwritten_samples(facts: Facts) -> Iterator[Verdict]:
    """The source writes into arrays that are stored or used as targets.

    ## What it does
    Reads the source of the script and of modules beside it. It reports a `__getitem__` that writes
    into the sample that the data set stores, an environment that returns its state array and
    overwrites it in the next step, and labels that are a second name of the inputs when these are
    masked in place. It also reports a second name of a mask that is written to.

    ## Why it matters
    Augmentation accumulates from epoch to epoch, until the training samples have little in common
    with the validation samples. Stored states all show the latest one. Masked inputs and their
    labels are equal, so nothing is left to predict.

    ## Example
    ```python
    row = self.rows[index]; row += 0.1 * torch.randn(16)  # bad
    row = self.rows[index] + 0.1 * torch.randn(16)        # good
    ```

    ## What to do
    Copy before you write: `.clone()` for a tensor, `.copy()` for an array. Or write an expression
    that makes a new one: `row = row * scale` instead of `row *= scale`.

    ## When it is wrong
    The change has no effect the second time, such as `row.clamp_(0, 1)`. The data set creates its
    samples when they are asked for, and stores none.

    ## How to confirm
    - Read the same sample twice and compare: `dataset[0][0]`.
    """
    yield from concluded(overwritten_samples, facts, _MISTAKES)
