"""Targets of a CTC loss cannot be aligned with their inputs."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import ALIGNMENT_BLANK_FRACTION, ALIGNMENT_IMPOSSIBLE_FRACTION

_CTC = "ctc_loss"


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(ALIGNMENT_IMPOSSIBLE_FRACTION,),
)
def impossible_alignments(
    facts: Facts,
    *,
    min_steps: Annotated[int, "sampled steps needed"] = 3,
    share: Annotated[float, "share of samples or of targets that is reported"] = 0.05,
) -> Iterator[Verdict]:
    """Targets of a CTC loss cannot be aligned with their inputs.

    ## What it does
    Compares the lengths that `F.ctc_loss` is given, and counts targets that are the blank label. It
    reports inputs that are shorter than their targets, and blanks among the targets.

    ## Why it matters
    A sequence with fewer frames than labels has no alignment: its loss is infinite, or with
    `zero_infinity=True` it is 0 and the sample is ignored without a word. The blank is no label,
    and no alignment can produce it.

    ## Example
    ```python
    input_lengths = lengths // 8   # bad
    input_lengths = lengths // 4   # good
    ```

    ## What to do
    Compute `input_lengths` after all subsampling of the encoder, in frames of what the loss is
    given. Keep one label number for the blank alone, and pass it as `blank`.

    ## When it is wrong
    Data of which a few samples are too short, and known to be left out by `zero_infinity`.

    ## How to confirm
    - Print `(input_lengths < target_lengths).sum()` and `(targets == blank).sum()` of a batch.
    """
    short = readings(facts, ALIGNMENT_IMPOSSIBLE_FRACTION, _CTC)
    blanks = readings(facts, ALIGNMENT_BLANK_FRACTION, _CTC)
    if len(short) < min_steps:
        yield impossible_alignments.not_examined(
            f"{len(short)} of the {min_steps} sampled steps needed"
        )
        return
    lacking = float(np.median(short))
    blank = float(np.median(blanks)) if len(blanks) >= min_steps else 0.0
    series = facts.run[ALIGNMENT_IMPOSSIBLE_FRACTION][_CTC]
    span = (series.first, series.last)
    if lacking > share:
        yield impossible_alignments.finding(
            f"{percent(lacking)} of the samples that ctc_loss is given have fewer input frames than"
            f" labels (median of {len(short)} sampled steps): they cannot be aligned",
            confidence=Confidence.CERTAIN,
            onset=series.first,
            evidence=(Evidence(ALIGNMENT_IMPOSSIBLE_FRACTION, span, percent(lacking), _CTC),),
            fix="compute `input_lengths` in frames of the output of the model, after subsampling",
        )
    elif blank > share:
        yield impossible_alignments.finding(
            f"{percent(blank)} of the targets of ctc_loss are the blank label (median of"
            f" {len(blanks)} sampled steps), which no alignment produces",
            confidence=Confidence.CERTAIN,
            onset=series.first,
            evidence=(Evidence(ALIGNMENT_BLANK_FRACTION, span, percent(blank), _CTC),),
            fix="pass the label number that no target has as `blank`",
        )
    else:
        yield impossible_alignments.clear(
            "hardly any input of ctc_loss is shorter than its target, and hardly any target is the"
            " blank"
        )
