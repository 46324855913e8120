"""Classes of the validation data do not occur in training."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import series
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import DATASET_CLASS, DATASET_CLASS_COUNT, DATASET_OUTPUTS

_SHOWN = 6  # classes in a sentence


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(DATASET_CLASS, DATASET_CLASS_COUNT, DATASET_OUTPUTS),
    preview=True,
)
def unseen_classes(
    facts: Facts,
    *,
    min_expected: Annotated[float, "samples of the class that training would have by chance"] = 20,
    min_share: Annotated[float, "share of the validation samples that is reported"] = 0.05,
) -> Iterator[Verdict]:
    """Classes of the validation data do not occur in training.

    ## What it does
    Compares the classes of training and validation samples, for loss functions over several
    classes. It reports classes that occur in validation but not in training, although enough
    training samples were read to expect twenty of them.

    ## Why it matters
    A class that is never trained cannot be predicted: all of these samples are wrong.

    ## Example
    ```python
    train, valid = samples[:800], samples[800:]    # bad
    train, valid = random_split(samples, [800, 200])   # good
    ```

    ## What to do
    Shuffle samples before splitting, or split each class separately. Check that both data sets use
    the same class indices.

    ## When it is wrong
    An evaluation on new classes by design, as for embeddings.

    ## How to confirm
    - Print `collections.Counter(labels)` of both data sets.
    """
    labels = {split: series(facts.run, DATASET_CLASS, split) for split in ("train", "valid")}
    counts = {split: series(facts.run, DATASET_CLASS_COUNT, split) for split in ("train", "valid")}
    train, valid = labels["train"], labels["valid"]
    trained, held_out = counts["train"], counts["valid"]
    if train is None or valid is None or trained is None or held_out is None:
        yield unseen_classes.not_examined("the classes of one of the splits are unknown")
        return
    total, shares = float(trained.values.sum()), held_out.values / held_out.values.sum()
    unseen = ~np.isin(valid.values, train.values) & (shares * total >= min_expected)
    share = float(shares[unseen].sum())
    if share < min_share:
        yield unseen_classes.clear(
            f"training has all {len(valid)} classes of validation among {total:.0f} samples"
        )
        return
    missing = valid.values[unseen]
    shown = ", ".join(f"{label:.0f}" for label in missing[:_SHOWN])
    shown += ", ..." if missing[_SHOWN:].size else ""
    yield unseen_classes.finding(
        f"{percent(share)} of the validation samples belong to {len(missing)} classes that do not"
        f" occur among {total:.0f} training samples: {shown}",
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=(
            Evidence(
                DATASET_CLASS, (0, len(valid) - 1), f"training has {len(train)} classes", "valid"
            ),
        ),
        fix="shuffle the samples before splitting: `random_split(samples, [800, 200])`",
    )
