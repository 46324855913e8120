"""The source steps a scheduler in another unit than it is set in."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "scheduler by batch": Mistake(
        "`{code}` is called for every batch, and the settings ({subject}) count epochs: the"
        " learning rate decays to nothing within the first epochs",
        "call it once for each epoch, after the loop over batches",
    ),
    "scheduler by epoch": Mistake(
        "`{code}` is called once for each epoch, and the {subject} is set in batches: the run ends"
        " at the start of the schedule",
        "call it after every `optimizer.step()`",
    ),
    "schedule of epochs": Mistake(
        "`{code}` has a length in epochs ({subject}) and is stepped for every batch: the"
        " schedule ends within the first epochs",
        "give it the number of updates: `epochs * len(loader)`",
    ),
    "schedule of samples": Mistake(
        "`{code}` has a length in samples (`{subject}`) and is stepped for every batch: the run"
        " ends at the start of the schedule",
        "count batches: `epochs * len(loader)`",
    ),
    "schedule by micro-batch": Mistake(
        "`{code}` is called for every micro-batch, and the length of the schedule counts"
        " updates: it ends too early",
        "call it after `optimizer.step()`, under the same condition",
    ),
    "schedule of micro-batches": Mistake(
        "`{code}` has a length in micro-batches and is stepped once for every `{subject}` of them:"
        " the run ends at the start of the schedule",
        "count updates: `epochs * math.ceil(len(loader) / {subject})`",
    ),
    "rising cosine": Mistake(
        "`{code}` reaches its minimum after `{subject}` epochs, and is stepped for all of them:"
        " the learning rate rises to its maximum again until the end",
        "give the number of steps of the whole run: `T_max=epochs`",
    ),
    "schedule of one group": Mistake(
        "`{code}` changes the learning rate of the first parameter group only: the other groups"
        " of `{subject}` keep theirs",
        '`for group in {subject}.param_groups: group["lr"] = lr`',
    ),
    "reversed plateau": Mistake(
        "`{code}` waits for `{subject}` in the wrong direction: every improvement counts as a"
        " plateau",
        'use `mode="max"` for a score and `mode="min"` for a loss',
    ),
}


@rule(severity=Severity.WARNING, level=Level.HYPERPARAMETER, needs=(LOSS,), preview=True)
def mistimed_schedule(facts: Facts) -> Iterator[Verdict]:
    """The source steps a scheduler in another unit than it is set in.

    ## What it does
    Reads the source of the script and of modules beside it. It reports a `StepLR`, `MultiStepLR` or
    `ExponentialLR` with small settings that is stepped in the loop over batches, and a
    `OneCycleLR`, `CosineAnnealingLR` or `LambdaLR` whose length is a number of batches that is
    stepped once for each epoch.

    ## Why it matters
    `StepLR(optimizer, 3)` that is stepped by batches multiplies the rate by its factor every third
    batch. A warm-up over 100 batches that is stepped by epochs keeps the rate near 0 for the whole
    run.

    ## Example
    ```python
    for batch in loader: train(batch); scheduler.step()   # bad
    for batch in loader: train(batch)                     # good
    ```

    ## What to do
    Step the scheduler in the unit that its settings count.

    ## When it is wrong
    An epoch is a single batch, or the schedule is meant to end within the first epoch.

    ## How to confirm
    - Print `scheduler.get_last_lr()` at the end of each epoch.
    """
    yield from concluded(mistimed_schedule, facts, _MISTAKES)
