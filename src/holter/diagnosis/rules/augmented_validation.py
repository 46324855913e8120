"""Validation samples are augmented at random."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import measured
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    REFETCH_INPUTS,
    REFETCH_NEARER,
    REFETCH_SAMPLES,
    REFETCH_TARGETS,
    REFETCH_TARGETS_LIKE_INPUTS,
    REFETCH_UNEXPLAINED,
    REFETCH_WITHIN_CLASSES,
)


@exception
def random_task(facts: Facts, differing: str, _: float) -> str | None:
    """The inputs are random by design: targets are absent, also change, or have the input shape."""
    targets = measured(facts.run, REFETCH_TARGETS, "valid")
    if targets is None:
        return f"{differing}, and they have no targets"
    if targets > 0:
        return f"{differing}, and so do the targets of {percent(targets)}"
    if (measured(facts.run, REFETCH_TARGETS_LIKE_INPUTS, "valid") or 0) > 0.5:
        return f"{differing}; their targets have the shape of the inputs, as in denoising"
    return None


@exception
def drawn_again(facts: Facts, differing: str, min_nearer: float) -> str | None:
    """The samples are generated, not versions of one another, so every draw is a fair test."""
    nearer = measured(facts.run, REFETCH_NEARER, "valid")
    if nearer is not None and nearer >= min_nearer:
        return None
    share = "none" if nearer is None else percent(nearer)
    return f"{differing}; {share} of them are nearer to their first version than to other samples"


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(REFETCH_INPUTS, REFETCH_SAMPLES),
    exceptions=(random_task, drawn_again),
)
def augmented_validation(
    facts: Facts,
    *,
    min_nearer: Annotated[float, "share nearer to their own version than to others"] = 0.9,
    min_samples: Annotated[int, "samples that must differ"] = 8,
) -> Iterator[Verdict]:
    """Validation samples are augmented at random.

    ## What it does
    Uses the preflight experiment `augmentation`, which fetches the same validation samples twice.
    It reports inputs that differ while their targets do not, if the two are versions of one sample.
    It is a hint if every sample has its own class, or if inputs differ even with the same random
    numbers.

    ## Why it matters
    Validation then measures samples that are harder than real ones, and draws them again each time.
    Its loss is too high and too noisy to show small improvements. A common reason is
    `random_split`: both splits share one data set and its transform.

    ## Example
    ```python
    train_set, valid_set = random_split(Images(augment), [800, 200])                      # bad
    train_set, valid_set = Subset(Images(augment), first), Subset(Images(None), rest)     # good
    ```

    ## What to do
    Make two data sets, one with the random transform and one without, and split both by the same
    indices. Resize, crop at the centre and normalise in validation; use flips, random crops and
    noise in training only.

    ## When it is wrong
    Test-time augmentation that averages over several versions of a sample, or a task that is noisy
    by design and adds noise when a sample is read.

    ## How to confirm
    - Fetch one sample twice, `valid_set[0][0]` and again, and show both.
    """
    differ = measured(facts.run, REFETCH_INPUTS, "valid")
    count = measured(facts.run, REFETCH_SAMPLES, "valid")
    if differ is None or count is None:
        yield augmented_validation.not_examined("no validation samples could be fetched twice")
        return
    differing = f"{differ * count:.0f} of {count:.0f} validation samples differ when fetched again"
    if not differ:
        yield augmented_validation.clear(f"{count:.0f} validation samples are the same every time")
    elif (excuse := augmented_validation.excused(facts, differing, min_nearer)) is not None:
        yield excuse
    elif differ * count < min_samples:
        yield augmented_validation.not_examined(f"{differing}; {min_samples} are needed")
    else:
        yield _finding(facts, differing, differ)


def _finding(facts: Facts, differing: str, differ: float) -> Verdict:
    nearer = measured(facts.run, REFETCH_NEARER, "valid") or 0.0
    train = measured(facts.run, REFETCH_INPUTS, "train")
    unexplained = measured(facts.run, REFETCH_UNEXPLAINED, "valid") or 0.0
    # With a class per sample, an index may stand for a class, and any sample of it may be drawn.
    is_hint = unexplained or measured(facts.run, REFETCH_WITHIN_CLASSES, "valid") == 0
    summary = differing if train is None else f"{differing} ({percent(train)} of training samples)"
    evidence = [
        Evidence(REFETCH_INPUTS, (0, 0), f"{percent(differ)} differ when fetched again", "valid"),
        Evidence(REFETCH_TARGETS, (0, 0), "none differs", "valid"),
        Evidence(REFETCH_NEARER, (0, 0), f"{percent(nearer)} are versions of one sample", "valid"),
    ]
    fix = "give validation a separate data set without random transforms"
    if unexplained:
        says = f"{percent(unexplained)} differ with the same random numbers"
        evidence.append(Evidence(REFETCH_UNEXPLAINED, (0, 0), says, "valid"))
        fix += "; check that `__getitem__` does not write into the data"
    return augmented_validation.finding(
        summary,
        confidence=Confidence.HINT if is_hint else Confidence.LIKELY,
        onset=0,
        evidence=evidence,
        fix=fix,
    )
