"""Columns of the input never change."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import listed, measured, series
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    DATASET_COLUMN_FIRST,
    DATASET_COLUMN_VALUES,
    DATASET_COLUMN_ZEROS,
    DATASET_EXAMINED,
)

_SPARSE = 0.3  # share of zeros in other columns: counts of words, one-hot categories
_PART = 0.2  # share of columns: more are the border of an image


@rule(
    severity=Severity.INFO,
    level=Level.DATA,
    needs=(DATASET_COLUMN_VALUES, DATASET_COLUMN_FIRST, DATASET_COLUMN_ZEROS),
)
def constant_features(
    facts: Facts, *, min_samples: int = 100, max_columns: int = 256
) -> Iterator[Verdict]:
    """Columns of the input never change.

    ## What it does
    Counts the different values of each column of a table, over at least `min_samples` training
    samples. Columns with a single one are reported, unless that is usual: a column of ones, zeros
    among sparse or one-hot columns, more than `max_columns` columns, or many that are constant, as
    the border of an image is.

    ## Why it matters
    Such a column tells nothing. It may be one that should tell something: a wrong index, a unit
    that rounds everything to 0, a join that found no partner. And if it does change later, the
    weights that belong to it were never trained.

    ## What to do
    Look at the column where it is made. Drop it if it is constant by nature.

    ## When it is wrong
    Rare features that happen to be absent from the samples that were read, and parts of an input
    that are not used yet.

    ## How to confirm
    - Print `x.std(0)` over the training set.
    """
    values, first = (
        series(facts.run, signal, "train")
        for signal in (DATASET_COLUMN_VALUES, DATASET_COLUMN_FIRST)
    )
    zeros = series(facts.run, DATASET_COLUMN_ZEROS, "train")
    count = measured(facts.run, DATASET_EXAMINED, "train") or 0
    if values is None or first is None or zeros is None or count < min_samples:
        yield constant_features.not_examined(f"{count:.0f} of the {min_samples} samples needed")
        return
    constant = (values.values == 1) & np.isfinite(first.values)
    places = np.flatnonzero(constant)
    if not len(places):
        yield constant_features.clear(f"all {len(values)} columns vary over {count:.0f} samples")
        return
    at = ", ".join(f"{each:.3g}" for each in np.unique(first.values[places])[:3])
    one = len(places) == 1
    said = (
        f"column {places[0]} is {at} in all {count:.0f} samples"
        if one
        else f"columns {listed(places.tolist(), len(places))} are the same in all {count:.0f}"
        f" samples ({at})"
    )
    others = zeros.values[~constant]
    is_sparse = not len(others) or np.median(others) > _SPARSE or (values.values == 2).any()
    if len(values) > max_columns or len(places) > max(_PART * len(values), 1):
        yield constant_features.normal(f"{len(places)} of {len(values)} columns never change")
    elif (first.values[places] == 1).all() and one:
        yield constant_features.normal(f"{said}: a column of ones")
    elif (first.values[places] == 0).all() and is_sparse:
        yield constant_features.normal(f"{said}; other columns are sparse too")
    else:
        yield constant_features.finding(
            said + _elsewhere(facts, places),
            confidence=Confidence.HINT,
            onset=0,
            evidence=(
                Evidence(
                    DATASET_COLUMN_VALUES,
                    (int(places[0]), int(places[-1])),
                    f"1 value; other columns have {np.median(values.values[~constant]):.0f} in the"
                    " median",
                    "train",
                ),
            ),
            fix="look at where these columns are made; drop them if they are constant by nature",
        )


def _elsewhere(facts: Facts, places: np.ndarray) -> str:
    valid = series(facts.run, DATASET_COLUMN_VALUES, "valid")
    if valid is None or len(valid) <= places[-1] or not (valid.values[places] > 1).any():
        return ""
    return "; in validation they vary" if len(places) > 1 else "; in validation it varies"
