"""Every label is the same class, and the model does not predict it."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import last, readings
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import ACCURACY, OUTPUT_UNITS, TARGET_LARGEST_CLASS_FRACTION


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(TARGET_LARGEST_CLASS_FRACTION, OUTPUT_UNITS, ACCURACY),
)
def constant_labels(
    facts: Facts,
    *,
    min_steps: Annotated[int, "sampled steps needed"] = 20,
    min_units: Annotated[int, "outputs needed to distinguish guessing from learning"] = 8,
    max_accuracy: Annotated[float, "accuracy at the end, over that of guessing"] = 3.0,
) -> Iterator[Verdict]:
    """Every label is the same class, and the model does not predict it.

    ## What it does
    Reports classification losses whose labels are a single class at every sampled step while the
    accuracy stays at chance.

    ## Why it matters
    A single label is the easiest possible task. If the model cannot learn it, the labels do not
    match its outputs: in a contrastive loss, the positive is not where the labels say.

    ## Example
    ```python
    loss = cross_entropy(a @ b.T, torch.zeros(len(a), dtype=torch.long))   # bad
    loss = cross_entropy(a @ b.T, torch.arange(len(a)))                    # good
    ```

    ## What to do
    For in-batch pairs the positives are on the diagonal: use `torch.arange(len(batch))`. Labels of
    0 are right only if the positive is the first column of the logits. In a classification, check
    how labels are read.

    ## When it is wrong
    An early phase of training in which the accuracy has not risen yet.

    ## How to confirm
    - Print `labels.unique()` over an epoch, and the argmax of a few rows of the outputs.
    """
    for function, series in facts.run[TARGET_LARGEST_CLASS_FRACTION].items():
        shares = readings(facts, TARGET_LARGEST_CLASS_FRACTION, function)
        right, units = readings(facts, ACCURACY, function), last(facts, OUTPUT_UNITS, function)
        if len(shares) < min_steps:
            yield constant_labels.not_examined(f"{len(shares)} of the {min_steps} steps needed")
            continue
        if not len(right) or units is None:
            yield constant_labels.not_examined("the accuracy of this loss is unknown")
            continue
        accuracy = float(np.mean(right[-max(len(right) // 4, 1) :]))
        measured = (
            f"share of the most frequent class in a batch: at least {shares.min():.2g}; accuracy"
            f" {accuracy:.2g}"
        )
        if shares.min() < 1 or units < min_units or accuracy > max_accuracy / units:
            yield constant_labels.clear(measured)
            continue
        span = series.first, series.last
        yield constant_labels.finding(
            f"all labels are one class at {len(shares)} sampled steps, yet the accuracy stays at"
            f" {accuracy:.1%} (guessing among {units:.0f}: {1 / units:.1%})",
            confidence=Confidence.LIKELY,
            onset=series.first,
            evidence=(
                Evidence(TARGET_LARGEST_CLASS_FRACTION, span, "100 % at all of them", function),
                Evidence(ACCURACY, span, f"{accuracy:.1%} at the end", function),
            ),
            fix="label each row with the column of its positive: `torch.arange(len(batch))` where"
            " positives are on the diagonal",
        )
