"""A column holds a placeholder that is used as a number."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import series
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import DATASET_COLUMN_PLACEHOLDER

_NAMED = 4  # columns


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(DATASET_COLUMN_PLACEHOLDER,),
    preview=True,
)
def placeholder_values(
    facts: Facts,
    *,
    max_share: Annotated[float, "share of samples; a more frequent value is a real one"] = 0.5,
) -> Iterator[Verdict]:
    """A column holds a placeholder that is used as a number.

    ## What it does
    Looks for a value that several training samples share in a column and that is more than five
    times the range of all other values away from them, such as `999999` or `-9999` for a missing
    value.

    ## Why it matters
    The placeholder dominates mean and standard deviation of the column. After standardisation all
    real values are almost equal, and the model cannot distinguish them.

    ## Example
    ```python
    x = (table - table.mean(0)) / table.std(0)                                     # bad
    table[table == 999999] = nan; x = (table - nanmean(table, 0)) / nanstd(table, 0)   # good
    ```

    ## What to do
    Replace placeholders by missing values before computing anything from the column, fill them with
    the median of the others, and add a column that marks missing values.

    ## When it is wrong
    A column with two real scales, one of them a single value.

    ## How to confirm
    - Print the most frequent value of the column, and the column without it.
    """
    shares = series(facts.run, DATASET_COLUMN_PLACEHOLDER, "train")
    if shares is None or not len(shares):
        yield placeholder_values.not_examined("the training samples were not read")
        return
    found = np.flatnonzero((shares.values > 0) & (shares.values <= max_share))
    if not len(found):
        yield placeholder_values.clear(f"no outlying repeated value in {len(shares)} columns")
        return
    names = ", ".join(str(place) for place in found[:_NAMED])
    share = float(shares.values[found].max())
    yield placeholder_values.finding(
        f"{percent(share)} of the training samples share a value in column {names} that is more"
        " than five times the range of all other values away from them",
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=(
            Evidence(
                DATASET_COLUMN_PLACEHOLDER,
                (int(found[0]), int(found[0])),
                f"{percent(share)} of the samples have this value",
                "train",
            ),
        ),
        fix="replace the placeholder by a missing value before scaling, and fill it:"
        " `column[column == placeholder] = column[column != placeholder].median()`",
    )
