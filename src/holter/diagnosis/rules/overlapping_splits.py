"""Validation samples are in the training set."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import is_continuous, measured, named, spread, unread
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent, portion
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    DATASET_DISTINCT,
    DATASET_DUPLICATES,
    DATASET_EXAMINED,
    DATASET_NEAR_OVERLAP,
    DATASET_OVERLAP,
    DATASET_SHARED_POSITIONS,
    DATASET_WINDOW_OVERLAP,
)

_ALL = 0.999  # of the validation samples: the set as a whole
_MIN_VALIDATION = 20  # validation samples for that to be certain
_MIN_PAIRS = 10  # equal inputs that are a hint
_MIN_WINDOWS = 5  # validation samples that are no coincidence
_FIX = "split once, before copying or shuffling, and keep the splits disjoint"
_FIX_WINDOWS = (
    "split before augmenting or cutting windows; keep copies, frames and windows of one recording"
    " in one split"
)


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(DATASET_OVERLAP, DATASET_DUPLICATES),
)
def overlapping_splits(
    facts: Facts,
    *,
    min_share: Annotated[float, "share of validation that is in training"] = 0.02,
    min_copies: Annotated[float, "share of both splits that are copies, for a hint"] = 0.1,
    error_share: Annotated[float, "share of validation from which on it is an error"] = 0.1,
    min_near: Annotated[float, "share of validation that is almost a training sample"] = 0.1,
    max_duplicates: Annotated[float, "share of duplicates in training to be certain"] = 0.5,
    min_windows: Annotated[float, "share of validation that overlaps training windows"] = 0.2,
    standard_deviations: Annotated[float, "above coincidence"] = 5.0,
) -> Iterator[Verdict]:
    """Validation samples are in the training set.

    ## What it does
    Uses the preflight experiment `data`, which compares inputs of both splits bit by bit, or their
    indices in a shared data set, which works with augmentation. It reports if more of validation is
    in training than by chance, as estimated from duplicates within training. It is a hint if
    duplicates of continuous inputs are as common within training, if inputs are near duplicates, or
    if they contain a part of a training input at another position, like overlapping windows.

    ## Why it matters
    The model may have memorised those samples. Validation then measures memorisation, not
    performance on new data: overfitting stays hidden, and decisions based on the metric are wrong.

    ## Example
    ```python
    train, valid = random_split(data, [800, 200])[0], random_split(data, [800, 200])[1]   # bad
    train, valid = random_split(data, [800, 200], torch.Generator().manual_seed(0))       # good
    ```

    ## What to do
    Split first, then copy, shuffle and augment. Pass `random_split` a generator with a fixed seed,
    especially if it is called twice. Remove duplicates before splitting; split by person, document
    or scene if several samples come from one.

    ## When it is wrong
    Validating on training data on purpose, to check whether a model can fit. Inputs with few
    distinct values repeat by chance; this is estimated within the training set, so a training set
    without duplicates and a validation set with duplicates look like a leak.

    ## How to confirm
    - Look at one of the named pairs: `train_set[i]` and `valid_set[j]`.
    - Remove the shared samples from validation and compare the losses.
    """
    by_position = [*_by_position(facts, min_share)]
    if by_position:
        yield from by_position
        return
    share = measured(facts.run, DATASET_OVERLAP, "inputs")
    copies = measured(facts.run, DATASET_DUPLICATES, "train")
    train, valid = (measured(facts.run, DATASET_EXAMINED, split) for split in ("train", "valid"))
    if share is None or copies is None or not train or not valid:
        yield overlapping_splits.not_examined("too few samples of one of the splits were read")
        return
    hits = round(share * valid)
    overlap = f"{hits} of {valid:.0f} validation inputs are among {train:.0f} training inputs"
    duplicates = f"{portion(copies)} of the training inputs are duplicates"
    excess = hits - copies * valid
    whole = min(excess / valid * unread(facts.run, "train"), 1.0)  # if all had been read
    distinct = measured(facts.run, DATASET_DISTINCT, "train") or train
    if excess > standard_deviations * spread(valid, copies, train) and whole >= min_share:
        is_whole = share >= _ALL and copies < max_duplicates and valid >= _MIN_VALIDATION
        yield overlapping_splits.finding(
            overlap
            + (f", about {percent(whole)} if all of training were read" if whole > share else "")
            + _example(facts),
            confidence=Confidence.CERTAIN if is_whole else Confidence.LIKELY,
            severity=None if whole >= error_share else Severity.WARNING,
            onset=0,
            evidence=_evidence(facts, duplicates),
            fix=_FIX,
        )
    elif (
        min(share, copies) * unread(facts.run, "train") >= min_copies
        and min(hits, copies * train) >= _MIN_PAIRS
        and is_continuous(facts.run, "train")
        and distinct >= train / 4
    ):
        yield overlapping_splits.finding(
            f"{overlap}, and continuous inputs are not equal by chance{_example(facts)}",
            confidence=Confidence.HINT,
            severity=Severity.WARNING,
            onset=0,
            evidence=_evidence(facts, duplicates),
            fix=_FIX,
        )
    elif (windows := _windows(facts, valid)) >= min_windows:
        yield overlapping_splits.finding(
            f"about {percent(windows)} of the validation inputs contain a part of a training input"
            f" at another position, like overlapping windows{_example(facts, 'window overlap')}",
            confidence=Confidence.HINT,
            severity=Severity.WARNING,
            onset=0,
            evidence=(
                Evidence(
                    DATASET_WINDOW_OVERLAP,
                    (0, 0),
                    "at least a quarter of their numbers equal those of one training input, bit"
                    " for bit",
                    "inputs",
                ),
            ),
            fix=_FIX_WINDOWS,
        )
    elif (near := measured(facts.run, DATASET_NEAR_OVERLAP, "inputs") or 0) >= min_near:
        yield overlapping_splits.finding(
            f"{percent(near)} of the validation inputs are almost equal to a training input"
            + _example(facts, "near overlap"),
            confidence=Confidence.HINT,
            severity=Severity.WARNING,
            onset=0,
            evidence=(
                Evidence(
                    DATASET_NEAR_OVERLAP,
                    (0, 0),
                    "their distance is below 5 % of that to the tenth nearest training input",
                    "inputs",
                ),
            ),
            fix=_FIX_WINDOWS,
        )
    else:
        if share >= min_share:
            yield overlapping_splits.normal(f"{overlap}, as expected by coincidence: {duplicates}")
        yield overlapping_splits.clear(f"{overlap}; {duplicates}")


def _windows(facts: Facts, valid: float) -> float:
    """Return the share of validation that overlaps training windows, if all of them were read."""
    share = measured(facts.run, DATASET_WINDOW_OVERLAP, "inputs") or 0.0
    if share * valid < _MIN_WINDOWS or not is_continuous(facts.run, "train"):
        return 0.0
    return min(share * unread(facts.run, "train"), 1.0)


def _by_position(facts: Facts, min_share: float) -> Iterator[Verdict]:
    if DATASET_SHARED_POSITIONS not in facts.run:
        return
    for trial, series in facts.run[DATASET_SHARED_POSITIONS].items():
        share = float(series.values[-1])
        if share < min_share:
            continue
        both = "the same data set" if trial == "same" else "data sets that hold the same data"
        yield overlapping_splits.finding(
            f"{percent(share)} of the validation samples are training samples: the same positions"
            f" of {both}{_example(facts)}",
            confidence=Confidence.CERTAIN if trial == "same" else Confidence.LIKELY,
            onset=0,
            evidence=(
                Evidence(
                    DATASET_SHARED_POSITIONS, (0, 0), f"{percent(share)} of validation", trial
                ),
                *_overlap_evidence(facts),
            ),
            fix=_FIX,
        )


def _evidence(facts: Facts, duplicates: str) -> Iterator[Evidence]:
    yield from _overlap_evidence(facts)
    yield Evidence(DATASET_DUPLICATES, (0, 0), duplicates, "train")


def _overlap_evidence(facts: Facts) -> Iterator[Evidence]:
    for trial, series in facts.run[DATASET_OVERLAP].items():
        says = f"{percent(series.values[-1])} of the validation samples that were read"
        yield Evidence(DATASET_OVERLAP, (0, 0), says, trial)


def _example(facts: Facts, what: str = "overlap") -> str:
    pairs = named(facts.run, what)
    return f" (validation {pairs[0][0]} is training {pairs[0][1]})" if pairs else ""
