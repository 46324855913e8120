"""Cross-entropy is given probabilities, and applies a second softmax."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import last
from holter.diagnosis.facts.outputs import of_finite_outputs
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    OUTPUT_LOG_PROBABILITY_FRACTION,
    OUTPUT_PROBABILITY_FRACTION,
    OUTPUT_UNITS,
)

_ALL = 0.99  # share of samples: rounding may spoil a few
_SOME = 0.2  # share of samples: one of several heads; of logits hardly any add up to 1


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(OUTPUT_PROBABILITY_FRACTION,),
)
def doubled_softmax(facts: Facts, *, min_steps: int = 3) -> Iterator[Verdict]:
    """Cross-entropy is given probabilities, and applies a second softmax.

    ## What it does
    Looks at what `F.cross_entropy` is given: on every sampled step (at least `min_steps`) the
    numbers of all samples are between 0 and 1 and add up to 1. Logits do not do that, so a softmax
    was applied already. It is likely where that holds for a part of the samples, on every step: one
    of several heads. Steps with predictions that are not finite are left out.

    ## Why it matters
    Cross-entropy applies a softmax of its own. The second one can tell nothing apart by more than a
    factor of e: the loss cannot fall under ln(1 + (K-1)/e) for K classes, gradients are small, and
    training is slow and stops early, without an error.

    ## What to do
    Return logits from the model: take the softmax out of its forward pass, and apply it only where
    probabilities are wanted. Or use `nn.NLLLoss` on `log_softmax`.

    ## When it is wrong
    It is a matter of values, not of names, and holds whatever made the numbers. Distillation that
    means to compare probabilities by cross-entropy would be an exception; none is known to be
    right.

    ## How to confirm
    - Print `output.sum(1)` before the loss: it is 1 for every sample.
    - Remove the softmax and repeat the first 100 steps: the loss should fall further.
    """
    for owner in facts.run[OUTPUT_PROBABILITY_FRACTION]:
        share = of_finite_outputs(facts, OUTPUT_PROBABILITY_FRACTION, owner)
        if owner != "cross_entropy" or not len(share):
            continue
        units = last(facts, OUTPUT_UNITS, owner) or 0
        least = float(share.values.min())
        if units < 2 or least < _SOME:
            logs = of_finite_outputs(facts, OUTPUT_LOG_PROBABILITY_FRACTION, owner).values
            if units >= 2 and len(logs) and logs.min() > _ALL:
                yield doubled_softmax.normal(
                    f"{owner} is given logarithms of probabilities: its own softmax changes nothing"
                )
            usual = float(np.median(share.values))
            yield doubled_softmax.clear(
                f"the predictions of {usual:.0%} of the samples that {owner} is given add up to 1"
            )
        elif len(share) < min_steps:
            yield doubled_softmax.not_examined(f"{len(share)} of the {min_steps} steps needed")
        else:
            whole = least >= _ALL
            floor = np.log(1 + (units - 1) / np.e)
            yield doubled_softmax.finding(
                f"{owner} is given probabilities and applies a second softmax: the loss of"
                f" {units:.0f} classes cannot fall under {floor:.3f}"
                if whole
                else f"{owner} is given probabilities for {least:.0%} of the samples or more and"
                " applies a second softmax to them",
                confidence=Confidence.CERTAIN if whole else Confidence.LIKELY,
                onset=share.first,
                evidence=(
                    Evidence(
                        OUTPUT_PROBABILITY_FRACTION,
                        (share.first, share.last),
                        f"on all {len(share)} sampled steps at least {least:.0%} of the samples"
                        " are between 0 and 1 and add up to 1",
                        owner,
                    ),
                ),
                fix="return logits from the model: take the softmax out of its forward pass",
            )
