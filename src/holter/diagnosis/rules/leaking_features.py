"""A single column of the input predicts the target almost perfectly."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import listed, measured, named, series
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import percent
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Finding, Level, Severity, Verdict
from holter.record.signals import (
    DATASET_CLASS_COUNT,
    DATASET_COLUMN_COPY,
    DATASET_COLUMN_INFORMATION,
    DATASET_COLUMN_ORDER,
    DATASET_COLUMN_RESIDUE,
    DATASET_COLUMN_VALUES,
    DATASET_EXAMINED,
    DATASET_PAIR_ORDER,
    Signal,
)

_EXACT = 0.999  # rank correlation without exceptions worth mentioning


@dataclass(frozen=True, slots=True)
class Leak:
    """Columns that predict the target, and the measurement that shows it."""

    columns: Sequence[int]
    summary: str
    signal: Signal
    says: str
    confidence: Confidence = Confidence.LIKELY
    width: int = 1  # columns that make one feature
    is_shared: bool = False  # several columns predict the target about as well


@exception
def many_columns(leak: Leak, table: Series, max_share: float) -> str | None:
    """The only column, or many columns, predict the target: that is the task itself."""
    total = len(table)
    features = len(leak.columns) / leak.width
    if len(leak.columns) < total and features <= max(max_share * total, 1):
        return None
    return f"{len(leak.columns)} of {total} columns predict the target: {leak.says}"


@exception
def alike_columns(leak: Leak, _: Series, __: float) -> str | None:
    """Several columns predict the target about equally well, like neighbours in time or space."""
    return f"{leak.summary}: {leak.says}" if leak.is_shared else None


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(DATASET_COLUMN_VALUES,),
    exceptions=(many_columns, alike_columns),
)
def leaking_features(
    facts: Facts,
    *,
    min_samples: Annotated[int, "training samples needed"] = 100,
    min_class: Annotated[int, "samples needed of each class"] = 5,
    max_residue: Annotated[float, "share of the variance a linear fit of a copy leaves"] = 1e-6,
    min_order: Annotated[float, "rank correlation of a column that predicts the target"] = 0.98,
    max_next: Annotated[
        float, "rank correlation of columns that predict the target less well"
    ] = 0.9,
    min_information: Annotated[float, "share of the target's entropy explained by a column"] = 0.93,
    min_pair_columns: Annotated[int, "columns of a table whose pairs are judged"] = 8,
    min_lost: Annotated[float, "share of the rank correlation that validation lacks"] = 0.5,
    min_train_order: Annotated[float, "rank correlation in training for that comparison"] = 0.8,
    max_share: Annotated[float, "share of the columns that can be a leak"] = 0.25,
) -> Iterator[Verdict]:
    """A single column of the input predicts the target almost perfectly.

    ## What it does
    Compares each column of a table with the target. It reports a column that is a linear function
    of the target or has one value per class, columns that are the one-hot encoded classes, and, as
    a hint, a column that determines the order of the target or almost all of it (mutual
    information, against permuted targets), in all data or only in training. Two columns that do so
    together are noted.

    ## Why it matters
    The model learns to copy that column. The loss is very low, also in validation, but the model
    fails in production, where the target is unknown.

    ## Example
    ```python
    x, y = table, table[:, -1:]           # bad
    x, y = table[:, :-1], table[:, -1:]   # good
    ```

    ## What to do
    Check whether the column is known at prediction time. Typical causes: the target left in the
    table, a column derived from it, means of the target by category that include the sample itself,
    an index of a table sorted by class.

    ## When it is wrong
    The target is a simple function of one or two columns by design. Noisy leaks, and leaks spread
    over more columns, are missed.

    ## How to confirm
    - Train without the column: the loss should get much worse.
    - Print the column next to the target for ten samples.
    """
    values = series(facts.run, DATASET_COLUMN_VALUES, "train")
    count = measured(facts.run, DATASET_EXAMINED, "train") or 0
    residue = series(facts.run, DATASET_COLUMN_RESIDUE, "train")
    copy = series(facts.run, DATASET_COLUMN_COPY, "train")
    class_counts = series(facts.run, DATASET_CLASS_COUNT, "train")
    if values is None or (residue is None and copy is None):
        yield leaking_features.not_examined("targets are not single, varying numbers")
        return
    if count < min_samples:
        yield leaking_features.not_examined(f"{count:.0f} of the {min_samples} samples needed")
        return
    leak = None
    if residue is not None:
        leak = _copies_of_number(residue, max_residue)
    elif class_counts is None or class_counts.values.min() < min_class:
        yield leaking_features.not_examined(f"a class has fewer than {min_class} samples")
        return
    elif copy is not None:
        leak = _copies_of_class(values, copy, len(class_counts))
    leak = (
        leak
        or _lost_in_validation(facts, min_train_order, min_lost, min_class)
        or _in_order(facts, min_order, max_next)
        or _informative(facts, min_information, max_next)
    )
    if leak is None:
        pair = _in_pair(facts, min_order, max_next) if len(values) >= min_pair_columns else None
        if pair is not None:
            yield leaking_features.normal(f"{pair.summary}: a leak, or a task made of two columns")
        yield leaking_features.clear(_closest(facts, len(values)))
    else:
        yield leaking_features.excused(leak, values, max_share) or _finding(leak)


def _copies_of_number(residue: Series, max_residue: float) -> Leak | None:
    columns = np.flatnonzero(residue.values < max_residue).tolist()
    if not columns:
        return None
    others = np.delete(residue.values, columns)
    beside = f"; the next column leaves {others.min():.2g}" if len(others) else ""
    return Leak(
        columns,
        f"{_name(columns)} a linear function of the target",
        DATASET_COLUMN_RESIDUE,
        f"a linear fit leaves {residue.values[columns].max():.2g} of the variance{beside}",
    )


def _copies_of_class(values: Series, copy: Series, kinds: int) -> Leak | None:
    copies = np.flatnonzero(copy.values == 2).tolist()
    single = np.flatnonzero(copy.values == 1).tolist()
    # In a table of codes (bits, one-hot categories) one of them may be the target by design.
    is_coded = bool((values.values <= max(kinds, 2)).all())
    confidence = Confidence.HINT if is_coded else Confidence.LIKELY
    if copies:
        return Leak(
            copies,
            f"{_name(copies)} the class: one value for each of {kinds} classes",
            DATASET_COLUMN_COPY,
            f"{kinds} values, one per class",
            confidence,
        )
    if kinds > 2 and len(single) >= kinds:
        return Leak(
            single,
            f"{_name(single)} the {kinds} classes one-hot",
            DATASET_COLUMN_COPY,
            "each separates one class from all others",
            confidence,
            width=kinds,
        )
    return None


def _lost_in_validation(
    facts: Facts, min_train_order: float, min_lost: float, min_class: int
) -> Leak | None:
    """A column whose order gives that of the target in training only."""
    train = series(facts.run, DATASET_COLUMN_ORDER, "train")
    valid = series(facts.run, DATASET_COLUMN_ORDER, "valid")
    if train is None or valid is None or len(valid) != len(train):
        return None
    if not _has_enough_validation(facts, min_class):
        return None
    best = int(train.values.argmax())
    there, elsewhere = float(train.values[best]), float(valid.values[best])
    if there < min_train_order or elsewhere >= (1 - min_lost) * there:
        return None
    return Leak(
        [best],
        f"the rank correlation of column {best} with the target is {there:.2g} in training and"
        f" {elsewhere:.2g} in validation",
        DATASET_COLUMN_ORDER,
        f"{there:.3g} in training, {elsewhere:.3g} in validation",
        Confidence.HINT,
    )


def _in_order(facts: Facts, min_order: float, max_next: float) -> Leak | None:
    """The columns whose order gives that of the target."""
    order = series(facts.run, DATASET_COLUMN_ORDER, "train")
    if order is None:
        return None
    columns = np.flatnonzero(order.values >= _EXACT).tolist()
    is_exact = bool(columns)
    if not columns and order.values.max() >= min_order:
        columns = np.flatnonzero(order.values > max_next).tolist()
    if not columns:
        return None
    others = np.delete(order.values, columns)
    beside = f"; the next column has {others.max():.2g}" if len(others) else ""
    alone = f"column {columns[0]} alone gives"
    noun = alone if len(columns) == 1 else f"columns {listed(columns, len(columns))} each give"
    return Leak(
        columns,
        f"{noun} the order of the targets",
        DATASET_COLUMN_ORDER,
        f"rank correlation {order.values[columns].min():.4g} with the target{beside}",
        Confidence.HINT,
        is_shared=not is_exact and len(columns) > 1,
    )


def _informative(facts: Facts, min_information: float, max_next: float) -> Leak | None:
    """The one column that tells almost all of the target, in whatever relation."""
    told = series(facts.run, DATASET_COLUMN_INFORMATION, "train")
    if told is None or not _stands_out(told, min_information, max_next * min_information):
        return None
    best = int(told.values.argmax())
    return Leak(
        [best],
        f"column {best} alone explains {percent(float(told.values[best]))} of the target's entropy",
        DATASET_COLUMN_INFORMATION,
        f"mutual information beyond permuted targets; the next column explains"
        f" {percent(float(np.delete(told.values, best).max()))}",
        Confidence.HINT,
    )


def _in_pair(facts: Facts, min_order: float, max_next: float) -> Leak | None:
    """The two columns that together give the order of the target, as no two others do."""
    pair = series(facts.run, DATASET_PAIR_ORDER, "train")
    order = series(facts.run, DATASET_COLUMN_ORDER, "train")
    columns = named(facts.run, "columns", "train")
    if pair is None or order is None or len(pair) < 2 or len(columns) != 2:
        return None
    together, others = float(pair.values[0]), float(pair.values[1])
    alone = float(order.values[columns].max())
    if together < max(min_order, _EXACT) or others > max_next or alone > max_next:
        return None
    return Leak(
        columns,
        f"columns {columns[0]} and {columns[1]} together give the order of the targets",
        DATASET_PAIR_ORDER,
        f"rank correlation {together:.4g}; {alone:.2g} for one of them alone, {others:.2g} for the"
        " best two other columns",
        Confidence.HINT,
        width=2,
    )


def _stands_out(values: Series, least: float, most: float) -> bool:
    """Whether the largest value reaches `least` and all others are at most `most`."""
    if len(values) < 2:
        return False
    rest, top = np.sort(values.values)[-2:]
    return bool(top >= least and rest <= most)


def _closest(facts: Facts, columns: int) -> str:
    order = series(facts.run, DATASET_COLUMN_ORDER, "train")
    if order is None:
        return f"none of {columns} columns is the target"
    best = int(order.values.argmax())
    return (
        f"none of {columns} columns predicts the target alone; the highest rank correlation is"
        f" {order.values[best]:.3g} (column {best})"
    )


def _has_enough_validation(facts: Facts, min_class: int) -> bool:
    counts = series(facts.run, DATASET_CLASS_COUNT, "valid")
    rare = counts is not None and (len(counts) < 2 or counts.values.min() < min_class)
    return (measured(facts.run, DATASET_EXAMINED, "valid") or 0) >= 50 and not rare


def _finding(leak: Leak) -> Finding:
    span = (leak.columns[0], leak.columns[-1])
    named = listed(leak.columns, len(leak.columns))
    return leaking_features.finding(
        leak.summary,
        confidence=leak.confidence,
        onset=0,
        evidence=(Evidence(leak.signal, span, leak.says, "train"),),
        fix=f"remove column {named} from the inputs, or compute it without the target",
    )


def _name(places: Sequence[int]) -> str:
    if len(places) == 1:
        return f"column {places[0]} is"
    return f"columns {listed(places, len(places))} are"
