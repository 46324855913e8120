"""Validation holds samples of the training set."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import is_continuous, measured, named, spread, unread
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    DATASET_DISTINCT,
    DATASET_DUPLICATES,
    DATASET_EXAMINED,
    DATASET_OVERLAP,
    DATASET_SHARED_POSITIONS,
)

_SURELY = 5.0  # standard deviations above coincidence
_ALL = 0.999
_FEW = 0.5  # share of training samples that occur twice: inputs are few anyway
_FIX = "split once, before anything is copied or shuffled, and keep the parts disjoint"


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(DATASET_OVERLAP, DATASET_DUPLICATES),
)
def overlapping_splits(
    facts: Facts, *, min_share: float = 0.02, min_copies: float = 0.1
) -> Iterator[Verdict]:
    """Validation holds samples of the training set.

    ## What it does
    Preflight reads up to 2000 samples of each split and compares inputs bit by bit; where both are
    parts of one data set it compares their positions in it, which sees through augmentation. The
    rule speaks where at least `min_share` of validation is in training, more than coincidence
    gives: training samples that are equal to one another show how often that is. Shared positions
    are certain, and so is a validation set that is in the training set as a whole. Where inputs
    that cannot be equal by chance are copies in `min_copies` of both splits alike, as after copying
    rare classes before splitting, it is a hint.

    ## Why it matters
    A model may know those samples by heart. Validation then tells how well it remembers, not how
    well it does on new data: overfitting goes unseen, and every choice made by that number is for
    the wrong reason.

    ## What to do
    Split first, then copy, shuffle and augment. With `random_split` give a generator of a fixed
    seed, above all if it is called twice. Remove duplicates before splitting; split by person,
    document or scene where several samples come from one.

    ## When it is wrong
    Validating on training data on purpose, to see whether a model can fit. Inputs with few
    different values repeat by chance: they are compared with the training set itself, but a
    training set from which duplicates were removed, beside a validation set from which they were
    not, looks like a leak.

    ## How to confirm
    - Look at one of the pairs that are named: `train_set[i]` and `valid_set[j]`.
    - Remove the shared samples from validation and compare the losses.
    """
    found = [*_by_position(facts, min_share)] or [*_by_value(facts, min_share, min_copies)]
    yield from found


def _by_position(facts: Facts, min_share: float) -> Iterator[Verdict]:
    if DATASET_SHARED_POSITIONS not in facts.run:
        return
    for trial, series in facts.run[DATASET_SHARED_POSITIONS].items():
        share = float(series.values[-1])
        if share < min_share:
            continue
        both = "the same data set" if trial == "same" else "data sets that hold the same data"
        yield overlapping_splits.finding(
            f"{share:.1%} of the validation samples are training samples: the same positions of"
            f" {both}{_example(facts)}",
            confidence=Confidence.CERTAIN if trial == "same" else Confidence.LIKELY,
            onset=0,
            evidence=(
                Evidence(DATASET_SHARED_POSITIONS, (0, 0), f"{share:.1%} of validation", trial),
                *_overlap(facts),
            ),
            fix=_FIX,
        )


def _by_value(facts: Facts, min_share: float, min_copies: float) -> Iterator[Verdict]:
    share = measured(facts.run, DATASET_OVERLAP, "inputs")
    copies = measured(facts.run, DATASET_DUPLICATES, "train")
    train, valid = (measured(facts.run, DATASET_EXAMINED, split) for split in ("train", "valid"))
    if share is None or copies is None or not train or not valid:
        yield overlapping_splits.not_examined("too little was read of one of the splits")
        return
    hits = round(share * valid)
    said = f"{hits} of {valid:.0f} validation inputs are among {train:.0f} training inputs"
    usual = f"{copies:.1%} of the training inputs occur twice there"
    excess = hits - copies * valid
    whole = min(excess / valid * unread(facts.run, "train"), 1.0)  # if all had been read
    distinct = measured(facts.run, DATASET_DISTINCT, "train") or train
    if excess > _SURELY * spread(valid, copies, train) and whole >= min_share:
        surely = share >= _ALL and copies < _FEW and valid >= 20
        yield overlapping_splits.finding(
            f"{said}; {usual}{_example(facts)}"
            + (f"; of all training samples that makes about {whole:.0%}" if whole > share else ""),
            confidence=Confidence.CERTAIN if surely else Confidence.LIKELY,
            severity=None if whole >= 0.1 else Severity.WARNING,
            onset=0,
            evidence=(
                *_overlap(facts),
                Evidence(DATASET_DUPLICATES, (0, 0), f"{copies:.1%} by coincidence", "train"),
            ),
            fix=_FIX,
        )
    elif (
        min(share, copies) * unread(facts.run, "train") >= min_copies
        and min(hits, copies * train) >= 10
        and is_continuous(facts.run, "train")
        and distinct >= train / 4
    ):
        yield overlapping_splits.finding(
            f"{said}; {usual}, and such inputs are not equal by chance{_example(facts)}",
            confidence=Confidence.HINT,
            severity=Severity.WARNING,
            onset=0,
            evidence=(
                *_overlap(facts),
                Evidence(DATASET_DUPLICATES, (0, 0), f"{copies:.1%} in training", "train"),
            ),
            fix=_FIX,
        )
    elif share >= min_share:
        yield overlapping_splits.normal(f"{said}, no more than by coincidence: {usual}")
        yield overlapping_splits.clear(f"{said}; {usual}")
    else:
        yield overlapping_splits.clear(said)


def _overlap(facts: Facts) -> Iterator[Evidence]:
    for trial, series in facts.run[DATASET_OVERLAP].items():
        says = f"{series.values[-1]:.1%} of the validation samples that were read"
        yield Evidence(DATASET_OVERLAP, (0, 0), says, trial)


def _example(facts: Facts) -> str:
    pairs = named(facts.run, "overlap")
    return f" (validation {pairs[0][0]} is training {pairs[0][1]})" if pairs else ""
