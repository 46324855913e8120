"""Samples of the data set hold NaN or infinity."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import listed, measured, named
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import DATASET_EXAMINED, DATASET_NONFINITE, DATASET_NONFINITE_LOSS

_SPLITS = {"train": "training", "valid": "validation"}


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(DATASET_NONFINITE, DATASET_EXAMINED),
)
def nonfinite_samples(facts: Facts) -> Iterator[Verdict]:
    """Samples of the data set hold NaN or infinity.

    ## What it does
    Preflight looks at inputs and targets of up to 2000 samples of each split, and at the loss of
    the first batch that holds a value that is not finite. If that loss is lost too it is certain;
    if it is finite the training can take such values, and it is noted; if no such batch was met in
    time it is a hint. The samples are named by their index.

    ## Why it matters
    One such value makes the loss NaN, the gradients with it, and after the next update all weights.
    It may take many batches until it comes up.

    ## What to do
    Mend, mask or drop these samples where the data is read. Standardising a column that is constant
    divides by zero: add a small number to the standard deviation.

    ## When it is wrong
    Masks of minus infinity, and missing values that the model handles, leave the loss finite, and
    are noted only.

    ## How to confirm
    - Print one of the samples that are named.
    """
    for split, name in _SPLITS.items():
        examined = measured(facts.run, DATASET_EXAMINED, split)
        if not examined:
            continue
        counts = {
            part: measured(facts.run, DATASET_NONFINITE, f"{split} {part}") or 0.0
            for part in ("inputs", "targets")
        }
        bad = {part: count for part, count in counts.items() if count}
        if not bad:
            yield nonfinite_samples.clear(f"{examined:.0f} {name} samples are finite")
            continue
        said = "; ".join(
            f"{part} of {count:.0f} of {examined:.0f} {name} samples hold NaN or infinity"
            f" ({listed(named(facts.run, f'nonfinite {part}', split), count)})"
            for part, count in bad.items()
        )
        lost = measured(facts.run, DATASET_NONFINITE_LOSS, split)
        if lost == 0:
            yield nonfinite_samples.normal(f"{said}, and the loss of a batch with them is finite")
            continue
        evidence = [
            Evidence(DATASET_NONFINITE, (0, 0), f"{count:.0f} of {examined:.0f}", f"{split} {part}")
            for part, count in bad.items()
        ]
        if lost:
            evidence.append(Evidence(DATASET_NONFINITE_LOSS, (0, 0), "the loss is lost", split))
        yield nonfinite_samples.finding(
            said + (", and the loss of a batch with them is not finite" if lost else ""),
            confidence=Confidence.CERTAIN if lost else Confidence.HINT,
            severity=None if lost else Severity.WARNING,
            onset=0,
            evidence=evidence,
            fix="mend or drop these samples where the data is read",
        )
