"""Cross-entropy receives probabilities and applies a second softmax."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import last
from holter.diagnosis.facts.outputs import of_finite_outputs
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent, portion
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    OUTPUT_LOG_PROBABILITY_FRACTION,
    OUTPUT_PROBABILITY_FRACTION,
    OUTPUT_UNITS,
)


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(OUTPUT_PROBABILITY_FRACTION,),
)
def doubled_softmax(
    facts: Facts,
    *,
    min_steps: Annotated[int, "sampled steps needed"] = 3,
    all_samples: Annotated[float, "share of samples that counts as all of them"] = 0.99,
    some_samples: Annotated[float, "share of samples that indicates one of several heads"] = 0.2,
) -> Iterator[Verdict]:
    """Cross-entropy receives probabilities and applies a second softmax.

    ## What it does
    Checks the input of `F.cross_entropy`, and reports numbers between 0 and 1 that sum to 1 on
    every sampled step: a softmax was already applied. If only some of the samples sum to 1, it is
    one of several heads. Steps with non-finite predictions are left out.

    ## Why it matters
    Cross-entropy applies a softmax itself. After the second one, two classes differ by a factor of
    e at most: for K classes the loss cannot fall below ln(1 + (K-1)/e), gradients are small, and
    training is slow and stops early, without an error.

    ## Example
    ```python
    loss = F.cross_entropy(logits.softmax(1), y)   # bad
    loss = F.cross_entropy(logits, y)              # good
    ```

    ## What to do
    Return logits from the model: remove the softmax from its forward pass, and apply it only where
    you need probabilities. Or use `nn.NLLLoss` on `log_softmax`.

    ## When it is wrong
    The rule checks values, not names. Distillation that deliberately applies cross-entropy to
    probabilities would be an exception; no sound example is known.

    ## How to confirm
    - Print `output.sum(1)` before the loss: it is 1 for every sample.
    - Remove the softmax and repeat the first 100 steps: the loss should fall further.
    """
    for function in facts.run[OUTPUT_PROBABILITY_FRACTION]:
        share = of_finite_outputs(facts, OUTPUT_PROBABILITY_FRACTION, function)
        if function != "cross_entropy" or not len(share):
            continue
        units = last(facts, OUTPUT_UNITS, function) or 0
        least = float(share.values.min())
        if units < 2 or least < some_samples:
            logs = of_finite_outputs(facts, OUTPUT_LOG_PROBABILITY_FRACTION, function).values
            if units >= 2 and len(logs) and logs.min() > all_samples:
                yield doubled_softmax.normal(
                    f"{function} receives log-probabilities: its softmax changes nothing"
                )
            yield doubled_softmax.clear(
                f"the predictions of {portion(float(np.median(share.values)))} of the samples"
                f" passed to {function} sum to 1"
            )
            continue
        if len(share) < min_steps:
            yield doubled_softmax.not_examined(f"{len(share)} of the {min_steps} steps needed")
            continue
        whole = least >= all_samples
        of = "" if whole else f" for at least {percent(least)} of the samples"
        floor = np.log(1 + (units - 1) / np.e)
        limit = f": with {units:.0f} classes the loss cannot fall below {floor:.3g}"
        yield doubled_softmax.finding(
            f"{function} receives probabilities{of} and applies a second softmax"
            + (limit if whole else ""),
            confidence=Confidence.CERTAIN if whole else Confidence.LIKELY,
            onset=share.first,
            evidence=(
                Evidence(
                    OUTPUT_PROBABILITY_FRACTION,
                    (share.first, share.last),
                    f"at least {percent(least)} of the samples sum to 1 on all {len(share)} steps",
                    function,
                ),
            ),
            fix="return logits from the model: remove the softmax from its forward pass",
        )
