"""Batches pair inputs with the targets of other samples."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import measured
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import DATASET_MISPAIRED

_NAMES = {"train": "training", "valid": "validation"}


@rule(severity=Severity.ERROR, level=Level.DATA, needs=(DATASET_MISPAIRED,))
def mispaired_batches(
    facts: Facts, *, share: Annotated[float, "share of samples that is reported"] = 0.1
) -> Iterator[Verdict]:
    """Batches pair inputs with the targets of other samples.

    ## What it does
    Collates 16 samples with the loader's `collate_fn`, and looks up each row of inputs and targets
    among these samples. It reports rows that combine the input of one sample with the target of
    another.

    ## Why it matters
    Labels of other inputs cannot be learned: the model learns their frequencies at most, or
    memorises them.

    ## Example
    ```python
    xs = sorted((x for x, _ in batch), key=len); ys = [y for _, y in batch]    # bad
    batch = sorted(batch, key=lambda pair: len(pair[0])); xs, ys = zip(*batch)  # good
    ```

    ## What to do
    In `collate_fn`, sort or shuffle the samples before separating inputs and targets.

    ## When it is wrong
    A task that deliberately pairs an input with the target of another sample.

    ## How to confirm
    - Call `loader.collate_fn([dataset[i] for i in range(4)])`, and compare the batch with these
      samples.
    """
    parts = {split: measured(facts.run, DATASET_MISPAIRED, split) for split in _NAMES}
    known = {split: part for split, part in parts.items() if part is not None}
    wrong = {split: part for split, part in known.items() if part >= share}
    if not wrong:
        names = " and ".join(_NAMES[split] for split in known)
        yield mispaired_batches.clear(
            f"inputs and targets of {names} batches belong to the same samples"
        )
        return
    shares = " and ".join(
        f"{percent(part)} of the samples in a {_NAMES[split]} batch"
        for split, part in wrong.items()
    )
    yield mispaired_batches.finding(
        f"{shares} have the target of another sample",
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=tuple(
            Evidence(
                DATASET_MISPAIRED,
                (0, 0),
                f"{percent(part)} of the rows of a collated batch",
                split,
            )
            for split, part in wrong.items()
        ),
        fix="sort the samples before separating inputs and targets in `collate_fn`",
    )
