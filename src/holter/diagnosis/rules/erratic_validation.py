"""The validation loss jumps from pass to pass although the training loss does not."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.validation import enough_passes, scatter
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, VAL_INPUT_FINGERPRINT, VAL_LOSS


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(LOSS, VAL_LOSS),
)
def erratic_validation(
    facts: Facts,
    *,
    min_passes: Annotated[int, "validation passes needed"] = 8,
    min_jump: Annotated[float, "typical jump of the logarithm of the loss"] = 0.3,
    min_factor: Annotated[float, "jumps of validation over those of training"] = 5.0,
    max_trend: Annotated[float, "change from first to last third, in jumps"] = 2.0,
    min_level: Annotated[float, "median loss over its initial level that matters"] = 0.05,
) -> Iterator[Verdict]:
    """The validation loss jumps from pass to pass although the training loss does not.

    ## What it does
    Measures how far the logarithm of each loss deviates from a straight line through its
    neighbours, at the same passes. It gives a hint if validation deviates far more than training in
    both halves of the run, and by more than its overall change. A single bad pass does not count.

    ## Why it matters
    Early stopping, plateau schedulers and checkpoint selection depend on single passes. On such a
    curve they select by chance.

    ## Example
    ```python
    valid_loader = DataLoader(random_split(data, [990, 10])[1])      # bad
    valid_loader = DataLoader(random_split(data, [800, 200])[1])     # good
    ```

    ## What to do
    Validate on more samples, and on the same ones each time. If the split is large and fixed, look
    at what differs between training and validation: batch norm with running statistics from small
    batches, or a learning rate that is still high.

    ## When it is wrong
    With large learning rates, the eval-mode loss of networks with batch norm jumps until the rate
    falls. A few samples with enormous losses dominate the mean; their median would be stable.

    ## How to confirm
    - Validate twice without training in between: if the two differ, the passes see other samples,
      or the model is not in eval mode.
    - Validate on four times as many samples: jumps that shrink by half come from the split.
    """
    curves = enough_passes(facts, min_passes)
    if isinstance(curves, str):
        yield erratic_validation.not_examined(curves)
        return
    if min(curves.validation.min(), curves.training.min()) <= 0:
        yield erratic_validation.not_examined("a loss of exactly 0 has no logarithm")
        return
    validation, training = np.log(curves.validation), np.log(curves.training)
    jump, training_jump = scatter(validation), scatter(training)
    half, third = len(curves) // 2, curves.third
    lasting = min(scatter(validation[:half]), scatter(validation[-half:]))
    trend = abs(np.median(validation[:third]) - np.median(validation[-third:]))
    initial = curves.constant or float(curves.validation[0])
    measured = (
        f"the validation loss typically jumps by {np.expm1(jump):.0%} from pass to pass, the"
        f" training loss by {np.expm1(training_jump):.0%}"
    )
    if (
        jump < max(min_jump, min_factor * training_jump)
        or lasting < min_jump / 2
        or jump * max_trend < trend
    ):
        yield erratic_validation.clear(measured)
        return
    level = float(np.median(curves.validation))
    if level < min_level * initial:
        yield erratic_validation.harmless(
            f"{measured}; its median is {level:.2g}, {level / initial:.1%} of the initial level"
        )
        return
    yield erratic_validation.finding(
        f"{measured}, over {len(curves)} passes between {curves.validation.min():.3g} and"
        f" {curves.validation.max():.3g}",
        confidence=Confidence.HINT,
        onset=int(curves.steps[0]),
        evidence=(
            Evidence(
                VAL_LOSS,
                curves.span,
                f"typical jump {np.expm1(jump):.0%}; change from the first to the last third"
                f" {np.expm1(trend):.0%}",
                curves.owner,
            ),
            Evidence(
                LOSS, curves.span, f"typical jump {np.expm1(training_jump):.0%}", curves.trained
            ),
            *_first_batches(facts),
        ),
        fix="validate on more samples, the same ones each time, in eval mode",
    )


def _first_batches(facts: Facts) -> Iterator[Evidence]:
    """Tell whether the passes begin with the same batch, where that was recorded."""
    for model, fingerprints in (
        facts.run[VAL_INPUT_FINGERPRINT].items() if VAL_INPUT_FINGERPRINT in facts.run else ()
    ):
        if len(fingerprints) > 1:
            distinct = len(np.unique(fingerprints.values))
            says = f"{distinct} different first batches in {len(fingerprints)} passes"
            span = fingerprints.first, fingerprints.last
            yield Evidence(VAL_INPUT_FINGERPRINT, span, says, model)
