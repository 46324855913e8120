"""Padding changes the outputs, or counts in the loss."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    INPUT_ELEMENTS,
    PADDING_AMOUNT,
    PADDING_CHANGE,
    PADDING_COUNTED,
    PADDING_DECISIONS,
    PADDING_LENGTH,
    PADDING_ROUNDING,
    PADDING_START,
    PADDING_WIDTHS,
)

_NEXT = 0.1  # share of the change that may reach the first half of the positions
_NEARLY_ALL = 0.9  # share of the steps at which inputs have the same size: epochs end in others


@exception
def maximum_over_positions(facts: Facts, changed: str) -> str | None:
    """The amount of padding does not matter: it enters through a maximum, and training adapts."""
    if PADDING_AMOUNT not in facts.run:
        return None
    for trial, series in facts.run[PADDING_AMOUNT].items():
        if float(series.values[-1]) > float(facts.run[PADDING_ROUNDING][trial].values[-1]):
            return None
    return f"{changed}, regardless of their number, as with a maximum over positions"


@exception
def next_to_padding(facts: Facts, changed: str) -> str | None:
    """A convolution or recurrence that reaches into padding changes only adjacent outputs."""
    if PADDING_START not in facts.run:
        return None
    for trial, series in facts.run[PADDING_START].items():
        change = float(facts.run[PADDING_CHANGE][trial].values[-1])
        if float(series.values[-1]) > _NEXT * change:
            return None
    return f"{changed}, and hardly any in the first half of its positions"


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(PADDING_CHANGE, PADDING_LENGTH, PADDING_ROUNDING),
    exceptions=(maximum_over_positions, next_to_padding),
)
def leaking_padding(
    facts: Facts,
    *,
    min_change: Annotated[float, "change of the outputs in standard deviations"] = 0.1,
    much: Annotated[float, "change that matters even where the training learned"] = 0.5,
    min_counted: Annotated[float, "share of the targets that are padding"] = 0.02,
    min_gain: Annotated[float, "share of the best constant prediction's loss that is gone"] = 0.5,
) -> Iterator[Verdict]:
    """Padding changes the outputs, or counts in the loss.

    ## What it does
    Uses the experiment `padding`: the model is called in eval mode on samples with and without
    their padding; outputs that the loss counts must not change. It is a hint if all batches are
    padded to one length, or, in a training that learned, if the change is small or changes no
    predicted class; a fixed length in a training that learned is not reported. If outputs do not
    change, it gives a hint if the loss counts padded targets.

    ## Why it matters
    The output for a sample then depends on the longest sample of its batch: it changes with the
    batch size and with sorting by length, and the model learns to detect lengths. Padding that
    counts in the loss is easy to predict: the loss looks better than it is.

    ## Example
    ```python
    encoder(x)                                  # bad
    encoder(x, src_key_padding_mask=words == 0) # good
    ```

    ## What to do
    Give attention a mask of the padding (`src_key_padding_mask`, `attention_mask`), average over
    real positions only, take the last real state of a recurrence and pack its input with
    `pack_padded_sequence`. Set targets at padded positions to the loss's `ignore_index`.

    ## When it is wrong
    Batch lengths vary in training, and the model has learned to ignore padding well enough.

    ## How to confirm
    - Call the model in eval mode on one short sample, alone and padded: the outputs must agree.
    """
    changes = {name: float(series.values[-1]) for name, series in facts.run[PADDING_CHANGE].items()}
    worst = max(changes, key=lambda name: changes[name])
    rounding = float(facts.run[PADDING_ROUNDING][worst].values[-1])
    length = int(facts.run[PADDING_LENGTH][worst].values[-1])
    changed = (
        f"{length} positions of padding change the outputs of a sample by {changes[worst]:.2g}"
        " standard deviations"
    )
    excuse = None
    if changes[worst] > max(rounding, min_change):
        excuse = leaking_padding.excused(facts, changed)
        one_length = _one_length(facts)
        outcome = facts.outcome
        learned = outcome is not None and (outcome.gain or 0.0) >= min_gain
        if excuse is None and one_length and outcome is not None and learned:
            excuse = leaking_padding.harmless(f"{changed}, but {one_length}, and {outcome.says}")
        if excuse is None:
            yield leaking_padding.finding(
                f"{changed}; {one_length}" if one_length else changed,
                confidence=Confidence.HINT
                if one_length or (learned and (changes[worst] < much or _decides_alike(facts)))
                else Confidence.LIKELY,
                onset=0,
                evidence=tuple(
                    Evidence(PADDING_CHANGE, (0, 0), f"{change:.2g} standard deviations", name)
                    for name, change in changes.items()
                ),
                fix="mask padding in attention and averages, and use `pack_padded_sequence` for"
                " recurrent layers",
            )
            return
    counted = (
        float(facts.run[PADDING_COUNTED][""].values[-1]) if PADDING_COUNTED in facts.run else 0.0
    )
    if counted >= min_counted:
        yield leaking_padding.finding(
            f"{percent(counted)} of the targets that the loss counts are padding",
            confidence=Confidence.HINT,
            onset=0,
            evidence=(Evidence(PADDING_COUNTED, (0, 0), f"{percent(counted)}, not ignored"),),
            fix="set targets at padded positions to -100, or pass `ignore_index` to the loss",
        )
    elif excuse is not None:
        yield excuse
    else:
        yield leaking_padding.clear(f"{changed} (rounding: {rounding:.1g})")


def _decides_alike(facts: Facts) -> bool:
    """Whether each position of the samples gets the class that it gets without padding."""
    if PADDING_DECISIONS not in facts.run:
        return False
    return all(not series.values[-1] for series in facts.run[PADDING_DECISIONS].values())


def _one_length(facts: Facts) -> str | None:
    """Return that all batches are padded to one length, if so.

    What a sample is padded with is then always the same, and the model has adapted to it.
    """
    if INPUT_ELEMENTS in facts.run:  # of all steps
        for series in facts.run[INPUT_ELEMENTS].values():
            sizes = series.values[np.isfinite(series.values)]
            if not len(sizes) or np.mean(sizes == np.median(sizes)) < _NEARLY_ALL:
                return None
    elif PADDING_WIDTHS not in facts.run or facts.run[PADDING_WIDTHS][""].values[-1] > 1:
        return None
    return "all batches are padded to the same length"
