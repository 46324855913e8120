"""Validation samples are changed at random, as if for training."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import measured
from holter.diagnosis.rule import rule
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


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(REFETCH_INPUTS, REFETCH_SAMPLES),
)
def augmented_validation(
    facts: Facts, *, nearer: float = 0.9, min_samples: int = 8
) -> Iterator[Verdict]:
    """Validation samples are changed at random, as if for training.

    ## What it does
    Preflight fetches the same validation samples twice. The rule speaks where inputs differ and
    targets do not, for at least `min_samples`, and the two are versions of one sample: in `nearer`
    of them or more they are nearer to one another than to others of the same class. It is a hint
    where there are that many classes that no others were met, or where inputs differ even with the
    same random numbers. Samples that are drawn anew each time are no versions, nor are those whose
    targets change with them or have the shape of the input, as in masking and denoising.

    ## Why it matters
    Validation then measures harder samples than those the model is made for, and another draw of
    them each time: its loss is too high and noisy, and small improvements drown. The usual reason
    is `random_split`: both parts share one data set, and with it its transform.

    ## What to do
    Make two data sets, one with the random transform and one without, and split both by the same
    indices. Resize, crop at the centre and normalise in validation; leave flips, random crops and
    noise to training.

    ## When it is wrong
    Validation is augmented on purpose, to average over several versions of a sample, or the task is
    noisy by nature and noise is added when a sample is read.

    ## How to confirm
    - Fetch one twice: `valid_set[0][0]` and again; show both.
    """
    differ = measured(facts.run, REFETCH_INPUTS, "valid")
    count = measured(facts.run, REFETCH_SAMPLES, "valid")
    if differ is None or count is None:
        yield augmented_validation.not_examined("no validation samples could be fetched twice")
        return
    said = f"{differ * count:.0f} of {count:.0f} validation samples differ when fetched again"
    if not differ:
        yield augmented_validation.clear(f"{count:.0f} validation samples are the same every time")
    elif (why := _by_design(facts, nearer)) is not None:
        yield augmented_validation.normal(f"{said}: {why}")
    elif differ * count < min_samples:
        yield augmented_validation.not_examined(f"{said}; {min_samples} are needed")
    else:
        yield _finding(facts, said, differ)


def _by_design(facts: Facts, nearer: float) -> str | None:
    """Why inputs differ, if it is no augmentation."""
    targets = measured(facts.run, REFETCH_TARGETS, "valid")
    if targets is None:
        return "they have no targets"
    if targets > 0:
        return "their targets do too"
    if (measured(facts.run, REFETCH_TARGETS_LIKE_INPUTS, "valid") or 0) > 0.5:
        return "targets have the shape of inputs, as in denoising"
    near = measured(facts.run, REFETCH_NEARER, "valid")
    if near is None or near < nearer:
        return "they are drawn anew, no nearer to the first than others are"
    return None


def _finding(facts: Facts, said: str, differ: float) -> Verdict:
    near = measured(facts.run, REFETCH_NEARER, "valid")
    train = measured(facts.run, REFETCH_INPUTS, "train")
    strange = measured(facts.run, REFETCH_UNEXPLAINED, "valid") or 0.0
    # Where each has a class of its own, an index may stand for a class, and a sample for any of it.
    unsure = strange or measured(facts.run, REFETCH_WITHIN_CLASSES, "valid") == 0
    beside = "" if train is None else f"; of training samples {train:.0%} do"
    evidence = [
        Evidence(REFETCH_INPUTS, (0, 0), f"{differ:.0%} differ when fetched again", "valid"),
        Evidence(REFETCH_TARGETS, (0, 0), "none differs", "valid"),
        Evidence(REFETCH_NEARER, (0, 0), f"{near:.0%} are versions of one sample", "valid"),
    ]
    if strange:
        beside += ". They do even with the same random numbers: does reading write into the data?"
        evidence.append(
            Evidence(
                REFETCH_UNEXPLAINED, (0, 0), f"{strange:.0%} with the same random numbers", "valid"
            )
        )
    return augmented_validation.finding(
        said + beside,
        confidence=Confidence.HINT if unsure else Confidence.LIKELY,
        onset=0,
        evidence=evidence,
        fix="give validation a data set of its own, without random transforms",
    )
