"""Targets of a CTC loss cannot be aligned with their inputs, or only with a part of them."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    ALIGNMENT_BLANK_FRACTION,
    ALIGNMENT_FRAMES,
    ALIGNMENT_IMPOSSIBLE_FRACTION,
    ALIGNMENT_USED,
)

_CTC = "ctc_loss"
_LENGTHS = 4  # different numbers of frames


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
    max_used: Annotated[float, "share of the frames that the longest sample of a batch has"] = 0.75,
    max_spread: Annotated[float, "relative spread of that share over batches"] = 0.1,
) -> Iterator[Verdict]:
    """Targets of a CTC loss cannot be aligned with their inputs, or only with a part of them.

    ## What it does
    Compares the lengths passed to `F.ctc_loss`, and counts blank labels among the targets. It
    reports inputs shorter than their targets, blanks among the targets, and input lengths that cut
    off the end of every sample: batches are padded to their longest sample, but even its length
    covers only a part of the frames.

    ## Why it matters
    A sequence with fewer frames than labels has no alignment: its loss is infinite, or with
    `zero_infinity=True` it is 0 and the sample is silently ignored. The blank is not a label, and
    no alignment can produce it. Lengths that were divided by the stride twice cut each sample: all
    labels have to be aligned with its beginning.

    ## Example
    ```python
    input_lengths = lengths // 8   # bad
    input_lengths = lengths // 4   # good
    ```

    ## What to do
    Compute `input_lengths` after all subsampling of the encoder, in frames of the tensor passed to
    the loss. Reserve one label number for the blank, and pass it as `blank`.

    ## When it is wrong
    A few samples are known to be too short, and `zero_infinity` excludes them on purpose. Batches
    are padded to varying lengths that no sample reaches.

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
            f"{percent(lacking)} of the samples passed to ctc_loss have fewer input frames than"
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
            fix="pass a label number that no target uses as `blank`",
        )
    elif (used := _constant_share(facts, min_steps, max_used, max_spread)) is not None:
        yield impossible_alignments.finding(
            f"the longest input of a batch has {percent(used)} of the frames passed to ctc_loss"
            " (median), regardless of their number: the rest of each sample is ignored",
            confidence=Confidence.LIKELY,
            onset=series.first,
            evidence=(Evidence(ALIGNMENT_USED, span, percent(used), _CTC),),
            fix="pass the lengths of the model output: divide the input lengths by the stride only"
            " once",
        )
    else:
        yield impossible_alignments.clear(
            "hardly any input of ctc_loss is shorter than its target, and hardly any target is the"
            " blank"
        )


def _constant_share(
    facts: Facts, min_steps: int, max_used: float, max_spread: float
) -> float | None:
    """Return the share of the frames that the longest samples have, if it follows their number.

    Where all batches have the same number of frames, they may be padded to a fixed one.
    """
    used, frames = (readings(facts, each, _CTC) for each in (ALIGNMENT_USED, ALIGNMENT_FRAMES))
    if min(len(used), len(frames)) < max(min_steps, _LENGTHS) or len(np.unique(frames)) < _LENGTHS:
        return None
    middle = float(np.median(used))
    spread = float(np.ptp(np.percentile(used, (5, 95))))
    return middle if 0 < middle <= max_used and spread <= max_spread * middle else None
