"""The source draws the same random numbers in every step or epoch."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "repeated seed": Mistake(
        "`{code}` runs in every step, so `{subject}` draws the same samples each time",
        "create and seed the generator once, before the loop over batches",
    ),
    "seed in every epoch": Mistake(
        "`{code}` seeds the training's random generator in every epoch: each epoch repeats the"
        " same random numbers",
        "seed once before the training; for a reproducible evaluation use a separate generator or"
        " `torch.random.fork_rng()`",
        Confidence.HINT,  # where the order repeats, that is measured
    ),
    "same batches in every epoch": Mistake(
        "`{code}` seeds a generator at the start of every pass over `{subject}`: all epochs have"
        " the same batches",
        "create the generator in `__init__`, or add the epoch to the seed",
    ),
    "augmented once": Mistake(
        "`{code}` applies the random transform (`{subject}`) once, in `__init__`: all epochs see"
        " the same augmentation",
        "apply it in `__getitem__`",
    ),
    "fixed negatives": Mistake(
        "`{code}` draws one negative per pair (`{subject}`) once for all epochs",
        "draw it in `__getitem__`",
        Confidence.HINT,  # one draw can be meant
    ),
}


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,), preview=True)
def repeated_seeds(facts: Facts) -> Iterator[Verdict]:
    """The source draws the same random numbers in every step or epoch.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports a constant seed set in
    the loop over batches, or in a function called from it, if an index or a permutation is drawn
    afterwards. It also reports random transforms and negatives that a data set draws only once, in
    its constructor.

    ## Why it matters
    Every step uses the same rows, noise and time steps. The model memorises this one batch: the
    training loss becomes excellent, but the model fails on everything else.

    ## Example
    ```python
    for step in range(9): index = torch.randint(n, (64,), generator=torch.manual_seed(0))  # bad
    for step in range(9): index = torch.randint(n, (64,), generator=generator)             # good
    ```

    ## What to do
    Create the generator once and use it in all steps. Seeding once is enough for reproducibility.

    ## When it is wrong
    The script overfits one batch on purpose, to check whether the model can memorise it.

    ## How to confirm
    - Print the first index of the batch at two steps.
    """
    yield from concluded(repeated_seeds, facts, _MISTAKES)
