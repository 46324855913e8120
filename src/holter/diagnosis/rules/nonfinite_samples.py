"""Samples of the data set contain NaN or infinity."""

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
    """Samples of the data set contain NaN or infinity.

    ## What it does
    Preflight counts NaN and infinity in the inputs and targets of up to 2,000 samples per split,
    and computes the loss of the first batch that contains one. The finding is certain if that loss
    is not finite, and a hint if no such batch was found in time. Nothing is reported for a run that
    used all samples and learned: it masks or skips them.

    ## Why it matters
    One such value makes the loss NaN, the gradients with it, and after the next update all weights.
    It may take many batches until such a sample is drawn.

    ## Example
    ```python
    data = TensorDataset(x, y)                                            # bad
    kept = x.isfinite().all(dim=1); data = TensorDataset(x[kept], y[kept])  # good
    ```

    ## What to do
    Impute, mask or drop these samples where the data is read. Standardising a constant column
    divides by zero: clamp the standard deviation.

    ## When it is wrong
    Masks of minus infinity, and missing values that the model handles, leave the loss finite; a
    hint without a loss may be such a case.

    ## How to confirm
    - Print one of the named samples: `dataset[index]`.
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
        symptom = "; ".join(
            f"{part} of {count:.0f} of {examined:.0f} {name} samples hold NaN or infinity"
            f" ({listed(named(facts.run, f'nonfinite {part}', split), count)})"
            for part, count in bad.items()
        )
        lost = measured(facts.run, DATASET_NONFINITE_LOSS, split)
        if lost == 0:
            yield nonfinite_samples.harmless(f"{symptom}; the loss of such a batch is finite")
            continue
        trained = _trained_on_all(facts) if split == "train" and lost is None else ""
        if trained:
            yield nonfinite_samples.harmless(f"{symptom}; {trained}")
            continue
        evidence = [
            Evidence(DATASET_NONFINITE, (0, 0), f"{count:.0f} of {examined:.0f}", f"{split} {part}")
            for part, count in bad.items()
        ]
        if lost:
            evidence.append(
                Evidence(DATASET_NONFINITE_LOSS, (0, 0), "the loss is not finite", split)
            )
        yield nonfinite_samples.finding(
            symptom + ("; the loss of such a batch is not finite" if lost else ""),
            confidence=Confidence.CERTAIN if lost else Confidence.HINT,
            severity=None if lost else Severity.WARNING,
            onset=0,
            evidence=evidence,
            fix="impute or drop these samples where the data is read:"
            " `kept = x.isfinite().all(dim=1)`",
        )


def _trained_on_all(facts: Facts) -> str:
    """Say that a whole pass over the training data did no damage, or return ""."""
    epochs, outcome = facts.epochs, facts.outcome
    if epochs is None or not epochs.kind.startswith("passes") or epochs.count < 2:
        return ""
    if outcome is None or outcome.bad or not outcome.finite:
        return ""
    return f"the run trained on all samples, and {outcome.says}"
