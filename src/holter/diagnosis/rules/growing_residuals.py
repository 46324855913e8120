"""The residual stream grows from layer to layer, more and more."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import lacking
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import NORMALISATION_INPUT_RMS

_FEWEST = 20  # sampled steps
_LAYERS = 4  # normalising layers that make a depth
_RISING = 1.2  # times, from the third quarter of the readings to their end
_MORE = 5.0  # times more than `factor`: enough without a bad loss, or without growing any more


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(NORMALISATION_INPUT_RMS,),
    preview=True,
)
def growing_residuals(facts: Facts, *, factor: float = 30.0) -> Iterator[Verdict]:
    """The residual stream grows from layer to layer, more and more.

    ## What it does
    What a layer norm is given is, in a pre-norm network, the residual stream. Compares its size at
    the last such layer with that at the first, at the beginning of the run and at its end. It is
    likely where that ratio has grown more than `factor` times, with the stream itself, it still
    grows at the end of the readings (or has grown five times as much), and the loss is bad as well.
    It is a hint where the loss is fine, but the ratio has grown five times as much and still grows.

    ## Why it matters
    In a stream that is a thousand times larger than what a block adds, deep blocks no longer matter
    and their gradients vanish; in half precision what they add is rounded away, or it overflows.

    ## What to do
    Scale the initialisation of each block's last layer by one over the root of the depth, lower the
    learning rate of these, decay them, or normalise what blocks add as well.

    ## When it is wrong
    Some growth with depth is natural in pre-norm networks; a few neurons with massive activations
    lift the size without harm. Networks whose layer norms are not on the residual stream have no
    such thing.

    ## How to confirm
    - Train with the learning rate halved: a stream that settles then was driven by it.
    """
    stream = facts.sample(NORMALISATION_INPUT_RMS)
    read = np.flatnonzero(np.isfinite(stream.values).any(axis=0))  # others are never called
    if len(stream) < _FEWEST or len(read) < _LAYERS:
        yield growing_residuals.not_examined(
            lacking(sampled_steps=(len(stream), _FEWEST), normalising_layers=(len(read), _LAYERS))
        )
        return
    begin, middle = stream.between(0, 0.1).medians(), stream.between(0.5, 0.75).medians()
    end = stream.between(0.85, 1).medians()
    top, deep = int(read[0]), int(read[-1])
    if not np.min([begin[top], begin[deep], end[top], end[deep]]) > 0:  # nor where one is NaN
        yield growing_residuals.not_examined("the stream is zero or not finite at first or at last")
        return
    then, now = begin[deep] / begin[top], end[deep] / end[top]
    times = min(now / then, end[deep] / begin[deep])
    said = (
        f"the stream is {now:.3g} times as large at {stream.owners[deep]} as at"
        f" {stream.owners[top]}, after {then:.3g} times at first"
    )
    result = facts.outcome
    bad = result is not None and result.bad
    rises = bool(end[deep] > _RISING * middle[deep])
    if bad + rises + (times > _MORE * factor) < 2 or not times > factor:
        yield growing_residuals.clear(said)
        return
    span = (int(stream.steps[0]), int(stream.steps[-1]))
    evidence = [
        Evidence(
            NORMALISATION_INPUT_RMS,
            span,
            f"{begin[deep]:.3g} at first, {middle[deep]:.3g} half-way, {end[deep]:.3g} at last",
            stream.owners[deep],
        ),
        Evidence(
            NORMALISATION_INPUT_RMS, span, f"{begin[top]:.3g} to {end[top]:.3g}", stream.owners[top]
        ),
    ]
    if result is not None:
        evidence.append(result.evidence)
    above = stream.values[:, deep] > factor / 2 * begin[deep]
    yield growing_residuals.finding(
        said + ", and still grows" * rises + (f"; {result.says}" if bad and result else ""),
        confidence=Confidence.LIKELY if bad else Confidence.HINT,
        onset=int(stream.steps[int(above.argmax())]),
        evidence=evidence,
        fix="scale down the last layer of each block, or lower the learning rate",
    )
