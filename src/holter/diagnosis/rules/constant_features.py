"""Columns of the input never change."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import listed, measured, series
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.rule import exception, rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    DATASET_COLUMN_CONSTANT,
    DATASET_COLUMN_VALUES,
    DATASET_COLUMN_ZEROS,
    DATASET_EXAMINED,
)

_SPARSE = 0.3  # share of zeros in a column of counts or of one-hot categories
_IMAGE = 64  # columns of the smallest flattened image


@dataclass(frozen=True, slots=True)
class ConstantColumns:
    """A table with its constant columns: their places, and the one value of each."""

    places: npt.NDArray[np.int64]
    at: Values
    values: Values  # distinct values of every column
    zeros: Values  # share of zeros of the columns that vary
    samples: float

    def __str__(self) -> str:
        shown = ", ".join(f"{value:.3g}" for value in np.unique(self.at)[:3])
        if len(self.places) == 1:
            return f"column {self.places[0]} is {shown} in all {self.samples:.0f} samples"
        named = listed(self.places.tolist(), len(self.places))
        return f"columns {named} are constant in all {self.samples:.0f} samples ({shown})"


@exception
def flattened_image(columns: ConstantColumns, max_columns: int, max_share: float) -> str | None:
    """Border pixels of flattened images, or a few of many hundreds of columns, are constant."""
    total, constant = len(columns.values), len(columns.places)
    if total <= max_columns and (total < _IMAGE or constant <= max_share * total):
        return None
    return f"{constant} of {total} columns never change"


@exception
def bias_column(columns: ConstantColumns, _: int, __: float) -> str | None:
    """A single column of ones is the intercept of a linear model."""
    return str(columns) if columns.at.tolist() == [1.0] else None


@exception
def sparse_columns(columns: ConstantColumns, _: int, __: float) -> str | None:
    """Among counts and one-hot categories, a column of zeros is a category that rarely occurs."""
    others = columns.zeros
    is_sparse = not len(others) or np.median(others) > _SPARSE or (columns.values == 2).any()
    if not is_sparse or columns.at.any():
        return None
    return f"{columns}; other columns are also sparse"


@rule(
    severity=Severity.INFO,
    level=Level.DATA,
    needs=(DATASET_COLUMN_VALUES, DATASET_COLUMN_CONSTANT, DATASET_COLUMN_ZEROS),
    exceptions=(flattened_image, bias_column, sparse_columns),
)
def constant_features(
    facts: Facts,
    *,
    min_samples: Annotated[int, "training samples needed"] = 100,
    max_columns: Annotated[int, "columns of a table; more are a flattened image or counts"] = 256,
    max_share: Annotated[float, "share of constant columns; more are the border of images"] = 0.2,
) -> Iterator[Verdict]:
    """Columns of the input never change.

    ## What it does
    Counts the distinct values of each column of a table over the training samples, and reports
    columns with a single value.

    ## Why it matters
    Such a column carries no information. Often that is a mistake: a wrong index, a unit that rounds
    everything to 0, or a join without matches. If it varies in production, its weights were never
    trained.

    ## Example
    ```python
    pressure = pascals // 1_000_000         # bad
    pressure = (pascals - 101_000) / 2_000  # good
    ```

    ## What to do
    Inspect the code that computes the column. Drop the column if it is always constant.

    ## When it is wrong
    Rare features that do not occur in the samples read, and inputs that are reserved for later.

    ## How to confirm
    - Print `x.std(0)` over the training set.
    """
    values, first, zeros = (
        series(facts.run, signal, "train")
        for signal in (DATASET_COLUMN_VALUES, DATASET_COLUMN_CONSTANT, DATASET_COLUMN_ZEROS)
    )
    count = measured(facts.run, DATASET_EXAMINED, "train") or 0
    if values is None or first is None or zeros is None or count < min_samples:
        yield constant_features.not_examined(f"{count:.0f} of the {min_samples} samples needed")
        return
    constant = (values.values == 1) & np.isfinite(first.values)
    columns = ConstantColumns(
        places=np.flatnonzero(constant),
        at=first.values[constant].astype(np.float64),
        values=values.values.astype(np.float64),
        zeros=zeros.values[~constant].astype(np.float64),
        samples=count,
    )
    if not constant.any():
        yield constant_features.clear(f"all {len(values)} columns vary over {count:.0f} samples")
    elif (excuse := constant_features.excused(columns, max_columns, max_share)) is not None:
        yield excuse
    else:
        others = columns.values[~constant]
        beside = f"; the median of the others is {np.median(others):.0f}" if len(others) else ""
        yield constant_features.finding(
            f"{columns}{_in_validation(facts, columns.places)}",
            confidence=Confidence.HINT,
            onset=0,
            evidence=(
                Evidence(
                    DATASET_COLUMN_VALUES,
                    (int(columns.places[0]), int(columns.places[-1])),
                    f"1 distinct value{beside}",
                    "train",
                ),
            ),
            fix="inspect the code that computes these columns; drop them if they are always"
            " constant",
        )


def _in_validation(facts: Facts, places: npt.NDArray[np.int64]) -> str:
    valid = series(facts.run, DATASET_COLUMN_VALUES, "valid")
    if valid is None or len(valid) <= places[-1] or not (valid.values[places] > 1).any():
        return ""
    return "; in validation they vary" if len(places) > 1 else "; in validation it varies"
