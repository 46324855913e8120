"""The growth of the residual stream with depth increases during training."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import lacking
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import NORMALISATION_INPUT_RMS


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(NORMALISATION_INPUT_RMS,),
    preview=True,
)
def growing_residuals(
    facts: Facts,
    *,
    min_samples: Annotated[int, "sampled steps needed"] = 20,
    min_layers: Annotated[int, "normalisation layers needed"] = 4,
    factor: Annotated[float, "times by which the ratio of last to first layer grows"] = 30.0,
    far: Annotated[float, "times the factor that is enough if the growth has ended"] = 5.0,
    rising: Annotated[float, "times by which the stream still grows in the last half"] = 1.2,
) -> Iterator[Verdict]:
    """The growth of the residual stream with depth increases during training.

    ## What it does
    Measures the input of the normalisation layers, which in a pre-norm network is the residual
    stream: the ratio of the last layer to the first, at the start and at the end of the run. The
    finding is likely if that ratio grew a lot and the training failed, and a hint if it did not
    fail but the growth is very large and continues.

    ## Why it matters
    In a stream a thousand times larger than what a block adds, deep blocks have no effect and their
    gradients vanish; in half precision their contribution is rounded away, or the stream overflows.

    ## Example
    ```python
    nn.init.normal_(block.out.weight, std=0.02)                         # bad
    nn.init.normal_(block.out.weight, std=0.02 / (2 * depth) ** 0.5)    # good
    ```

    ## What to do
    Scale the initialisation of each block's last layer by 1/sqrt(depth), lower its learning rate,
    apply weight decay to it, or normalise the output of each block as well.

    ## When it is wrong
    Some growth with depth is normal in pre-norm networks, and a few neurons with massive
    activations raise the size without an effect on the loss. In networks whose normalisation layers
    are not on the residual stream the ratio means nothing.

    ## How to confirm
    - Train with half the learning rate: if the stream stops growing, the learning rate was the
      cause.
    """
    stream = facts.sample(NORMALISATION_INPUT_RMS)
    called = np.flatnonzero(np.isfinite(stream.values).any(axis=0))
    if len(stream) < min_samples or len(called) < min_layers:
        yield growing_residuals.not_examined(
            lacking(
                sampled_steps=(len(stream), min_samples),
                normalisation_layers=(len(called), min_layers),
            )
        )
        return
    begin, middle = stream.between(0, 0.1).medians(), stream.between(0.5, 0.75).medians()
    end = stream.between(0.85, 1).medians()
    top, deep = int(called[0]), int(called[-1])
    if not np.min([begin[top], begin[deep], end[top], end[deep]]) > 0:  # nor if one is NaN
        yield growing_residuals.not_examined(
            "the stream is zero or not finite at the start or at the end"
        )
        return
    before, after = begin[deep] / begin[top], end[deep] / end[top]
    growth = min(after / before, end[deep] / begin[deep])
    symptom = (
        f"the residual stream is {after:.3g} times as large at {stream.owners[deep]} as at"
        f" {stream.owners[top]}; initially {before:.3g} times"
    )
    rises, is_far = bool(end[deep] > rising * middle[deep]), growth > far * factor
    if growth <= factor or not (rises or is_far):
        yield growing_residuals.clear(symptom)
        return
    result = facts.outcome
    bad = result is not None and result.bad
    if result is not None and not bad and not (rises and is_far):
        yield growing_residuals.harmless(f"{symptom}; {result.says}")
        return
    span = (int(stream.steps[0]), int(stream.steps[-1]))
    evidence = [
        Evidence(
            NORMALISATION_INPUT_RMS,
            span,
            f"initially {begin[deep]:.3g}, {middle[deep]:.3g} midway, {end[deep]:.3g} at the end",
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
        symptom + (", and still growing" if rises else ""),
        confidence=Confidence.LIKELY if bad else Confidence.HINT,
        onset=int(stream.steps[int(above.argmax())]),
        evidence=evidence,
        fix="divide the initial weights of each block's last layer by `(2 * depth) ** 0.5`, or"
        " lower the learning rate",
    )
