"""The data sets of a training: how large, which classes, and a few samples as they are."""

from holter.record import Run
from holter.record.events import SampleShown
from holter.record.signals import (
    DATASET_ABSMAX,
    DATASET_CLASS,
    DATASET_CLASS_COUNT,
    DATASET_EXAMINED,
    DATASET_LABEL_CHANGES,
    DATASET_LENGTH,
    DATASET_MEAN,
    DATASET_STD,
    Signal,
)
from holter.reports._lines import Line, hanging

_CLASSES = 10  # of which each is told; of more the largest and the smallest
_ARROW = "  ->  "


def lines(run: Run, width: int) -> list[Line]:
    """Of each split: size, values, classes, and a few raw samples with their targets."""
    if DATASET_EXAMINED not in run:
        return []
    told: list[Line] = [(("data", "bold"),)]
    for split in run[DATASET_EXAMINED]:
        lead: Line = ((f"  {split:<8}", "bold"),)
        for fact in (_size(run, split), _classes(run, split), _order(run, split)):
            if fact:
                told += hanging(fact, width=width, lead=lead)
                lead = ((" " * 10, ""),)
        told += _samples(run, split, width)
    return told


def _size(run: Run, split: str) -> str:
    examined, length = _value(run, DATASET_EXAMINED, split), _value(run, DATASET_LENGTH, split)
    said = f"{examined:.0f} of {length:.0f} samples read"
    mean = _value(run, DATASET_MEAN, split)
    if mean is None:
        return said
    std, largest = _value(run, DATASET_STD, split), _value(run, DATASET_ABSMAX, split)
    return f"{said}; inputs {mean:.3g} ± {std:.3g}, largest {largest:.3g}"


def _classes(run: Run, split: str) -> str:
    if DATASET_CLASS_COUNT not in run or split not in run[DATASET_CLASS_COUNT]:
        return ""
    kinds, counts = run[DATASET_CLASS][split].values, run[DATASET_CLASS_COUNT][split].values
    shares = counts / counts.sum()
    if len(kinds) <= _CLASSES:
        each = ", ".join(f"{k:.0f}: {share:.1%}" for k, share in zip(kinds, shares, strict=True))
        return f"classes {each}"
    top, least = int(shares.argmax()), int(shares.argmin())
    return (
        f"{len(kinds)} classes, from {kinds[top]:.0f} with {shares[top]:.1%} to {kinds[least]:.0f}"
        f" with {shares[least]:.1%}"
    )


def _order(run: Run, split: str) -> str:
    changes = _value(run, DATASET_LABEL_CHANGES, split)
    if changes is None:
        return ""
    return f"served in order; the class changes {changes:.2g} times as often as in a random order"


def _samples(run: Run, split: str, width: int) -> list[Line]:
    shown: list[Line] = []
    for event in run.events_of(SampleShown):
        sample = event.what
        if sample.split == split:
            lead: Line = ((" " * 10, ""), (f"{sample.index:>6}  ", "dim"))
            text = sample.inputs + (_ARROW + sample.targets if sample.targets else "")
            shown += hanging(text, width=width, lead=lead)
    return shown


def _value(run: Run, signal: Signal, split: str) -> float | None:
    if signal not in run or split not in run[signal] or not len(run[signal][split]):
        return None
    return float(run[signal][split].values[-1])
