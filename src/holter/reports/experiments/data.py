"""The data sets of a training: sizes, value ranges, classes, groups, and stored samples."""

from holter.record import Run
from holter.record.events import SampleShown
from holter.record.signals import (
    DATASET_ABSMAX,
    DATASET_CLASS,
    DATASET_CLASS_COUNT,
    DATASET_EXAMINED,
    DATASET_KEY_SCORE,
    DATASET_KEY_SHARED,
    DATASET_LABEL_CHANGES,
    DATASET_LENGTH,
    DATASET_MEAN,
    DATASET_STD,
    Signal,
)
from holter.reports.experiments import Cell, ResultTable

_NAME = "data"
_MOST_CLASSES = 10  # listed one by one; of more classes, the largest and the smallest


def results(run: Run) -> list[ResultTable]:
    """Return sizes and value ranges of each split, its classes, and samples if any are stored."""
    if DATASET_EXAMINED not in run:
        return []
    splits = tuple(run[DATASET_EXAMINED])
    columns = ("split", "samples", "read", "input mean", "input std", "largest input")
    notes = [note for split in splits for note in (*_many_classes(run, split), *_order(run, split))]
    sizes = tuple((split, *_sizes(run, split)) for split in splits)
    tables = [ResultTable(_NAME, "data", columns, sizes, tuple(notes))]
    shares = [row for split in splits for row in _classes(run, split)]
    if shares:
        tables.append(ResultTable(_NAME, "classes", ("split", "class", "share, %"), tuple(shares)))
    if keys := _keys(run):
        heads = ("column", "shared, %", "score", "without related samples", "without others")
        tables.append(ResultTable(_NAME, "groups and times in both splits", heads, keys))
    samples = [row for split in splits for row in _samples(run, split)]
    if samples:
        names = ("split", "index", "inputs", "targets")
        tables.append(ResultTable(_NAME, "samples", names, tuple(samples)))
    return tables


def _sizes(run: Run, split: str) -> tuple[Cell, ...]:
    length, examined = _value(run, DATASET_LENGTH, split), _value(run, DATASET_EXAMINED, split)
    moments = (_value(run, signal, split) for signal in (DATASET_MEAN, DATASET_STD, DATASET_ABSMAX))
    counts = (None if number is None else int(number) for number in (length, examined))
    return (*counts, *moments)


def _classes(run: Run, split: str) -> list[tuple[Cell, ...]]:
    if DATASET_CLASS_COUNT not in run or split not in run[DATASET_CLASS_COUNT]:
        return []
    classes, counts = run[DATASET_CLASS][split].values, run[DATASET_CLASS_COUNT][split].values
    if len(classes) > _MOST_CLASSES:
        return []
    shares = 100 * counts / counts.sum()
    return [(split, int(label), float(share)) for label, share in zip(classes, shares, strict=True)]


def _many_classes(run: Run, split: str) -> list[str]:
    if DATASET_CLASS_COUNT not in run or split not in run[DATASET_CLASS_COUNT]:
        return []
    classes, counts = run[DATASET_CLASS][split].values, run[DATASET_CLASS_COUNT][split].values
    if len(classes) <= _MOST_CLASSES:
        return []
    shares = counts / counts.sum()
    largest, smallest = int(shares.argmax()), int(shares.argmin())
    return [
        (
            f"{split}: {len(classes)} classes; the largest, {classes[largest]:.0f}, has"
            f" {shares[largest]:.1%} of the samples, the smallest, {classes[smallest]:.0f},"
            f" {shares[smallest]:.1%}"
        )
    ]


def _order(run: Run, split: str) -> list[str]:
    changes = _value(run, DATASET_LABEL_CHANGES, split)
    if changes is None:
        return []
    return [
        f"{split}: not shuffled; the class changes {changes:.2g} times as often as in random order"
    ]


def _samples(run: Run, split: str) -> list[tuple[Cell, ...]]:
    samples = [event.what for event in run.events_of(SampleShown)]
    return [
        (split, sample.index, sample.inputs, sample.targets)
        for sample in samples
        if sample.split == split
    ]


def _keys(run: Run) -> tuple[tuple[Cell, ...], ...]:
    """Return each possible group or time, and how well the nearest training input predicts."""
    if DATASET_KEY_SCORE not in run:
        return ()
    rows = []
    for trial, scores in run[DATASET_KEY_SCORE].items():
        share = _value(run, DATASET_KEY_SHARED, trial)
        rows.append((trial, None if share is None else 100 * share, *scores.values.tolist()))
    return tuple(rows)


def _value(run: Run, signal: Signal, split: str) -> float | None:
    if signal not in run or split not in run[signal] or not len(run[signal][split]):
        return None
    return float(run[signal][split].values[-1])
