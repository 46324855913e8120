"""The source steps a scheduler per batch instead of per epoch, or vice versa."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "scheduler by batch": Mistake(
        "`{code}` is called for every batch, but its settings ({subject}) count epochs: the"
        " learning rate decays to almost 0 within the first epochs",
        "call it once per epoch, after the loop over batches",
    ),
    "scheduler by epoch": Mistake(
        "`{code}` is called once per epoch, but the {subject} is set in batches: the run ends at"
        " the start of the schedule",
        "call it after every `optimizer.step()`",
    ),
    "schedule of epochs": Mistake(
        "`{code}` has a length in epochs ({subject}) but is stepped for every batch: the schedule"
        " ends within the first epochs",
        "pass it the number of updates: `epochs * len(loader)`",
    ),
    "schedule of samples": Mistake(
        "`{code}` has a length in samples (`{subject}`) but is stepped for every batch: the run"
        " ends at the start of the schedule",
        "count batches: `epochs * len(loader)`",
    ),
    "schedule by micro-batch": Mistake(
        "`{code}` is called for every micro-batch, but its length counts updates: the schedule"
        " ends too early",
        "call it after `optimizer.step()`, under the same condition",
    ),
    "schedule of micro-batches": Mistake(
        "`{code}` has a length in micro-batches but is stepped once per `{subject}` of them: the"
        " run ends at the start of the schedule",
        "count updates: `epochs * math.ceil(len(loader) / {subject})`",
    ),
    "rising cosine": Mistake(
        "`{code}` reaches its minimum after `{subject}` epochs but is stepped for all epochs: the"
        " learning rate rises to its maximum again by the end",
        "pass the number of steps of the whole run: `T_max=epochs`",
    ),
    "schedule of one group": Mistake(
        "`{code}` changes the learning rate of the first parameter group only, not of the other"
        " groups of `{subject}`",
        '`for group in {subject}.param_groups: group["lr"] = lr`',
    ),
    "reversed plateau": Mistake(
        "`{code}` monitors `{subject}` with the wrong mode: every improvement counts as a plateau",
        'use `mode="max"` for a score and `mode="min"` for a loss',
    ),
}


@rule(severity=Severity.WARNING, level=Level.HYPERPARAMETER, needs=(LOSS,), preview=True)
def mistimed_schedule(facts: Facts) -> Iterator[Verdict]:
    """The source steps a scheduler per batch instead of per epoch, or vice versa.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports a `StepLR`,
    `MultiStepLR` or `ExponentialLR` with small settings that is stepped in the loop over batches,
    and a `OneCycleLR`, `CosineAnnealingLR` or `LambdaLR` whose length is a number of batches but
    that is stepped once per epoch.

    ## Why it matters
    `StepLR(optimizer, 3)` stepped per batch multiplies the rate by `gamma` every third batch. A
    warm-up over 100 batches stepped per epoch keeps the rate near 0 for the whole run.

    ## Example
    ```python
    for batch in loader: train(batch); scheduler.step()   # bad
    for batch in loader: train(batch)                     # good
    ```

    ## What to do
    Step the scheduler in the unit of its settings.

    ## When it is wrong
    An epoch is a single batch, or the schedule should end within the first epoch.

    ## How to confirm
    - Print `scheduler.get_last_lr()` at the end of each epoch.
    """
    yield from concluded(mistimed_schedule, facts, _MISTAKES)
