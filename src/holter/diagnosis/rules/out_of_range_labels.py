"""Labels name classes that the model has no output for."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import listed, measured, named
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    DATASET_EXAMINED,
    DATASET_OUT_OF_RANGE,
    DATASET_OUTPUTS,
    TARGET_COUNT,
)

_MET = 5.0  # labels out of range that training would have met by now, and stopped at


@rule(severity=Severity.ERROR, level=Level.DATA, needs=(DATASET_OUTPUTS, DATASET_OUT_OF_RANGE))
def out_of_range_labels(facts: Facts) -> Iterator[Verdict]:
    """Labels name classes that the model has no output for.

    ## What it does
    Preflight compares the classes of up to 2000 samples of each split with the number of scores
    that `F.cross_entropy` or `F.nll_loss` is given. A class below 0, or as large as that number or
    larger, is out of range; the class that the loss is told to ignore is not. Only where the loss
    is given targets as the data set holds them, and where training would not have met such a label
    by now.

    ## Why it matters
    The loss function raises an error at the first such label, which may be hours away; on a GPU it
    is an assertion that names neither label nor sample, and ends the process.

    ## What to do
    Count classes from 0. Give the model as many outputs as there are classes, or map rare ones to
    an index of their own. A label that stands for none belongs into `ignore_index`.

    ## When it is wrong
    Labels are changed between the data set and the loss in some batches only.

    ## How to confirm
    - Look at one of the samples that are named, and at the last layer's `out_features`.
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
        passed = _passed(facts)
        if outside / examined * passed > _MET:
            yield out_of_range_labels.not_examined(
                f"{outside:.0f} of {examined:.0f} labels of the data set are out of range, but"
                f" {passed:.0f} targets went through the loss: they are changed on the way"
            )
            return
        which = listed(named(facts.run, "out of range", split), outside)
        yield out_of_range_labels.finding(
            f"{outside:.0f} of {examined:.0f} {word} samples have labels outside of the"
            f" {outputs:.0f} classes that the loss is given ({which})",
            confidence=Confidence.LIKELY,
            onset=0,
            evidence=(
                Evidence(DATASET_OUT_OF_RANGE, (0, 0), f"{outside:.0f} samples", split),
                Evidence(DATASET_OUTPUTS, (0, 0), f"{outputs:.0f} classes", split),
            ),
            fix="count classes from 0, and give the model an output for each",
        )


def _passed(facts: Facts) -> float:
    """How many targets loss functions were given, at least."""
    if TARGET_COUNT not in facts.run:
        return 0.0
    return max((float(each.values.sum()) for each in facts.run[TARGET_COUNT].values()), default=0.0)
