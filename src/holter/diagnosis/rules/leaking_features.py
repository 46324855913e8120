"""A column of the input is the target itself."""

from collections.abc import Iterator, Sequence

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import listed, measured, series
from holter.diagnosis.rule import rule
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    DATASET_CLASS_COUNT,
    DATASET_COLUMN_COPY,
    DATASET_COLUMN_ORDER,
    DATASET_COLUMN_RESIDUE,
    DATASET_COLUMN_VALUES,
    DATASET_EXAMINED,
    Signal,
)

_RARE = 5  # samples of a class: fewer agree with a column by chance
_ORDERED, _LOST = 0.8, 0.5  # order in training, and the part of it that is left in validation
_ALONE = 0.999  # order of one column that is worth a note
_FIX = "take out the columns that are made from the target, or make them without it"


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(DATASET_COLUMN_VALUES,))
def leaking_features(
    facts: Facts, *, max_residue: float = 1e-6, min_samples: int = 100
) -> Iterator[Verdict]:
    """A column of the input is the target itself.

    ## What it does
    Over at least `min_samples` training samples, each column of a table is compared with the
    target. The rule speaks where a column is the target but for scale and shift (a line through it
    leaves less than `max_residue` of the variance), where it has exactly one value for each class,
    or where columns are the classes one-hot; and, as a hint, where the order of one column gives
    that of the target in training and not in validation. It does not where most columns do so, as
    in toy problems, nor where a column merely predicts the target well: that is noted.

    ## Why it matters
    The model learns to copy that column. Losses get very low, in validation too, and in use, where
    the target is not known, it fails.

    ## What to do
    Ask of the column whether it is known at the time of prediction. Usual culprits: the target left
    in the table, a column derived from it, means of the target by category that include the sample
    itself, an index of a table sorted by class.

    ## When it is wrong
    The target is a simple function of one column by design. Conversely, a leak with some noise, or
    spread over several columns, is not seen.

    ## How to confirm
    - Train without the column: the loss should get much worse.
    - Print the column beside the target for ten samples.
    """
    values = series(facts.run, DATASET_COLUMN_VALUES, "train")
    count = measured(facts.run, DATASET_EXAMINED, "train") or 0
    residue = series(facts.run, DATASET_COLUMN_RESIDUE, "train")
    copy = series(facts.run, DATASET_COLUMN_COPY, "train")
    if values is None or (residue is None and copy is None):
        yield leaking_features.not_examined("targets are not single numbers that differ")
    elif count < min_samples:
        yield leaking_features.not_examined(f"{count:.0f} of the {min_samples} samples needed")
    elif residue is not None:
        yield from _numbers(facts, residue, max_residue)
    elif copy is not None:
        yield from _classes(facts, values, copy)


def _numbers(facts: Facts, residue: Series, max_residue: float) -> Iterator[Verdict]:
    found = np.flatnonzero(residue.values < max_residue).tolist()
    best = int(residue.values.argmin())
    said = f"of {len(residue)} columns, {best} leaves {residue.values[best]:.2g} of the variance"
    if not found:
        yield from _by_order(facts, f"{said} of the target")
    elif len(found) > max(len(residue) // 4, 1):
        yield leaking_features.normal(f"{len(found)} of {len(residue)} columns are the target")
    else:
        yield _finding(
            f"{_columns(found)} the target but for scale and shift",
            Confidence.LIKELY,
            DATASET_COLUMN_RESIDUE,
            found,
            f"{residue.values[found].max():.2g} of the variance is left; the next column leaves"
            f" {np.delete(residue.values, found).min():.2g}",
        )


def _classes(facts: Facts, values: Series, copy: Series) -> Iterator[Verdict]:
    counts = series(facts.run, DATASET_CLASS_COUNT, "train")
    if counts is None or counts.values.min() < _RARE:
        yield leaking_features.not_examined("there are too few samples of some classes")
        return
    kinds = len(counts)
    copies = np.flatnonzero(copy.values == 2).tolist()
    single = np.flatnonzero(copy.values == 1).tolist()
    discrete = bool((values.values <= max(kinds, 2)).all())
    if copies and len(copies) <= max(len(copy) // 4, 1):
        yield _finding(
            f"{_columns(copies)} the class: one value for each of {kinds}",
            # Among bits and the like a column that is the answer may be the task.
            Confidence.HINT if discrete else Confidence.LIKELY,
            DATASET_COLUMN_COPY,
            copies,
            f"{kinds} values, one for each class",
        )
    elif kinds > 2 and kinds <= len(single) < len(copy) and not discrete:
        yield _finding(
            f"{_columns(single)} the {kinds} classes one-hot",
            Confidence.LIKELY,
            DATASET_COLUMN_COPY,
            single,
            "each tells one class from all others",
        )
    elif copies or len(single) == len(copy):
        yield leaking_features.normal("the inputs are hardly more than the class itself")
    else:
        yield from _by_order(facts, f"none of {len(copy)} columns is the class")


def _by_order(facts: Facts, said: str) -> Iterator[Verdict]:
    """Columns that give the order of the target: in training alone, or in both."""
    train = series(facts.run, DATASET_COLUMN_ORDER, "train")
    if train is None:
        yield leaking_features.clear(said)
        return
    valid = series(facts.run, DATASET_COLUMN_ORDER, "valid")
    best = int(train.values.argmax())
    there = float(train.values[best])
    if valid is not None and len(valid) == len(train) and _are_enough(facts):
        elsewhere = float(valid.values[best])
        if there >= _ORDERED and elsewhere < _LOST * there:
            yield _finding(
                f"column {best} gives the order of the target in training ({there:.3f} of 1), and"
                f" not in validation ({elsewhere:.3f})",
                Confidence.HINT,
                DATASET_COLUMN_ORDER,
                [best],
                f"{there:.3f} in training, {elsewhere:.3f} in validation",
            )
            return
    if there >= _ALONE:
        yield leaking_features.normal(f"column {best} alone puts the targets in order")
    yield leaking_features.clear(
        f"{said}; the order of {best} gives {there:.3f} of that of targets"
    )


def _are_enough(facts: Facts) -> bool:
    counts = series(facts.run, DATASET_CLASS_COUNT, "valid")
    rare = counts is not None and (len(counts) < 2 or counts.values.min() < _RARE)
    return (measured(facts.run, DATASET_EXAMINED, "valid") or 0) >= 50 and not rare


def _finding(
    said: str, confidence: Confidence, signal: Signal, columns: Sequence[int], says: str
) -> Verdict:
    span = (columns[0], columns[-1])
    return leaking_features.finding(
        said,
        confidence=confidence,
        onset=0,
        evidence=(Evidence(signal, span, says, "train"),),
        fix=_FIX,
    )


def _columns(places: Sequence[int]) -> str:
    if len(places) == 1:
        return f"column {places[0]} is"
    return f"columns {listed(places, len(places))} are"
