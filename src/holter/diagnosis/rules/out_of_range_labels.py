"""Labels are outside the range of the model's classes."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import listed, measured, named
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    DATASET_EXAMINED,
    DATASET_OUT_OF_RANGE,
    DATASET_OUTPUTS,
    TARGET_COUNT,
)


@exception
def remapped(facts: Facts, share: float, met: float) -> str | None:
    """Training used such labels without an error, so the loop maps them into range."""
    counts = facts.run[TARGET_COUNT].values() if TARGET_COUNT in facts.run else ()
    trained = max((float(series.values.sum()) for series in counts), default=0.0)
    if share * trained <= met:
        return None
    return (
        f"{percent(share)} of the labels of the data set are out of range, but {trained:.0f}"
        " targets passed the loss function without an error"
    )


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(DATASET_OUTPUTS, DATASET_OUT_OF_RANGE),
    exceptions=(remapped,),
)
def out_of_range_labels(
    facts: Facts,
    *,
    met: Annotated[float, "labels out of range that training can meet without an error"] = 5.0,
) -> Iterator[Verdict]:
    """Labels are outside the range of the model's classes.

    ## What it does
    Preflight compares the classes of up to 2000 samples of each split with the number of logits
    passed to `F.cross_entropy` or `F.nll_loss`. It reports classes below 0 and classes that are not
    below that number, apart from `ignore_index`, if the loss receives the targets of the data set
    unchanged.

    ## Why it matters
    The loss function raises an error at the first such label, possibly hours after the start. On a
    GPU it is a device-side assertion that names neither label nor sample and ends the process.

    ## Example
    ```python
    model = nn.Linear(64, 4)                       # bad
    model = nn.Linear(64, int(labels.max()) + 1)   # good
    ```

    ## What to do
    Count classes from 0. Give the model as many outputs as there are classes, or map rare ones to a
    shared index. Use `ignore_index` for labels that are not a class.

    ## When it is wrong
    The loop changes labels between the data set and the loss, in some batches only.

    ## How to confirm
    - Look at one of the named samples, and at `out_features` of the last layer.
    """
    for split, word in (("train", "training"), ("valid", "validation")):
        outputs = measured(facts.run, DATASET_OUTPUTS, split)
        outside = measured(facts.run, DATASET_OUT_OF_RANGE, split)
        examined = measured(facts.run, DATASET_EXAMINED, split)
        if outputs is None or outside is None or examined is None:
            continue
        if not outside:
            yield out_of_range_labels.clear(
                f"the labels of {examined:.0f} {word} samples are within {outputs:.0f} classes"
            )
            continue
        if split == "train":
            excuse = out_of_range_labels.excused(facts, outside / examined, met)
            if excuse is not None:
                yield excuse
                return  # whoever maps the training labels also maps those of validation
        which = listed(named(facts.run, "out of range", split), outside)
        yield out_of_range_labels.finding(
            f"{outside:.0f} of {examined:.0f} {word} samples have labels outside the {outputs:.0f}"
            f" classes of the loss (samples {which})",
            confidence=Confidence.LIKELY,
            onset=0,
            evidence=(
                Evidence(DATASET_OUT_OF_RANGE, (0, 0), f"{outside:.0f} samples", split),
                Evidence(DATASET_OUTPUTS, (0, 0), f"{outputs:.0f} classes", split),
            ),
            fix="count classes from 0, and give the model an output for each",
        )
