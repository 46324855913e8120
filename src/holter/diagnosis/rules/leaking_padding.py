"""Padding changes the outputs, or counts in the loss."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    PADDING_AMOUNT,
    PADDING_CHANGE,
    PADDING_COUNTED,
    PADDING_LENGTH,
    PADDING_ROUNDING,
)


@exception
def maximum_over_positions(facts: Facts, changed: str) -> str | None:
    """Padding whose amount does not matter enters through a maximum, which trains with it."""
    if PADDING_AMOUNT not in facts.run:
        return None
    for trial, series in facts.run[PADDING_AMOUNT].items():
        if float(series.values[-1]) > float(facts.run[PADDING_ROUNDING][trial].values[-1]):
            return None
    return f"{changed}, whatever their number, as a maximum over positions does"


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(PADDING_CHANGE, PADDING_LENGTH, PADDING_ROUNDING),
    exceptions=(maximum_over_positions,),
)
def leaking_padding(
    facts: Facts,
    *,
    min_change: Annotated[float, "change of the outputs in standard deviations"] = 0.1,
    min_counted: Annotated[float, "share of the targets that are padding"] = 0.02,
) -> Iterator[Verdict]:
    """Padding changes the outputs, or counts in the loss.

    ## What it does
    Reads the experiment padding: samples are given to the model with and without their padding, in
    eval mode, and outputs at real positions must not change. If they do not, it gives a hint when
    the loss counts targets that are padding.

    ## Why it matters
    The output for a sample then depends on the longest sample of its batch. Alone, sorted by
    length, or in batches of another size, it gets other outputs, and the model learns to detect
    lengths. Padding that counts in the loss is easy to predict: the loss looks better than it is.

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
    All samples are always padded to one length, in training as in use: the model has adapted to it.

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
        if excuse is None:
            yield leaking_padding.finding(
                changed,
                confidence=Confidence.LIKELY,
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
