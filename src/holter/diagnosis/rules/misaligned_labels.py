"""Labels are shifted by one or two positions, and little was learned."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import series, why_absent
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import DATASET_ALIGNMENT, LOSS

_OWN = 2  # the place of the label's own position


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,), preview=True)
def misaligned_labels(
    facts: Facts,
    *,
    min_share: Annotated[float, "share of the labels' entropy that another token explains"] = 0.2,
    min_ratio: Annotated[float, "times as much as the own token explains"] = 3.0,
    max_learned: Annotated[float, "loss at the end over the best constant prediction"] = 0.7,
) -> Iterator[Verdict]:
    """Labels are shifted by one or two positions, and little was learned.

    ## What it does
    Measures how much of the entropy of labels is explained by the tokens one and two positions
    before and after them, over the training samples. It reports if one of these positions explains
    far more than the label's own and the loss stayed near the best constant prediction.

    ## Why it matters
    A label one position too early belongs to a token that a causal model has not seen yet; one that
    is too late requires memory.

    ## Example
    ```python
    ids, labels = [BOS] + words, tags + [IGNORE]    # bad
    ids, labels = [BOS] + words, [IGNORE] + tags    # good
    ```

    ## What to do
    Print the tokens and labels of one sample below each other. Special tokens at the beginning
    shift the tokens but not the labels; so do padding and truncation on the left.

    ## When it is wrong
    Tasks in which the label of a position deliberately describes the next or previous token.

    ## How to confirm
    - Print the tokens of one sample next to their labels.
    - Shift the labels by the reported number of positions, and train again.
    """
    found = series(facts.run, DATASET_ALIGNMENT, "train")
    if found is None:
        why = why_absent(facts.run, DATASET_ALIGNMENT, "the data sets were not examined")
        yield misaligned_labels.not_examined(why)
        return
    best = int(np.argmax(found.values))
    offset, told, own = best - _OWN, float(found.values[best]), float(found.values[_OWN])
    measured = f"a token explains {percent(max(own, 0.0))} of its own label"
    if told < min_share or told < min_ratio * own:
        yield misaligned_labels.clear(measured)
        return
    where = "before" if offset > 0 else "after"
    measured += f", and {percent(told)} of the label {abs(offset)} positions {where} it"
    chance = facts.chance
    if isinstance(chance, str) or chance.level < max_learned * chance.constant:
        yield misaligned_labels.harmless(f"{measured}, but {facts.run_outcome.says}")
        return
    yield misaligned_labels.finding(
        measured,
        confidence=Confidence.HINT,
        onset=0,
        evidence=(Evidence(DATASET_ALIGNMENT, (0, 4), measured, "train"),),
        fix=f"shift the labels by {abs(offset)}: print the tokens of one sample next to its labels",
    )
