"""The validation loss jumps from pass to pass though the training loss does not."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.validation import Curves, scatter
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, VAL_INPUT_FINGERPRINT, VAL_LOSS

_TREND = 2.0  # jumps that a trend from the first to the last third has to exceed to count
_SMALL = 0.05  # of where the loss began: under it jumps are of no interest


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(LOSS, VAL_LOSS),
)
def erratic_validation(
    facts: Facts, *, min_passes: int = 8, min_jump: float = 0.3, min_factor: float = 5.0
) -> Iterator[Verdict]:
    """The validation loss jumps from pass to pass though the training loss does not.

    ## What it does
    Takes the logarithms of the validation loss and of the training loss at the same passes, at
    least `min_passes`, and measures how far each strays from a straight line through its
    neighbours. It gives a hint where validation typically strays by `min_jump` (0.3 is 35 %),
    `min_factor` times as far as training does, in the first half of the passes and in the second,
    and more than it moves in all. One bad pass, or a restless beginning, is no matter.

    ## Why it matters
    Early stopping, learning-rate plateaus and the choice of a checkpoint follow single passes: of
    a curve like this they pick by chance.

    ## What to do
    Validate on more samples, and on the same ones each time. If the split is large enough and
    fixed, look at what differs between training and validation: batch norm whose running
    statistics come from small batches, or a rate that is still high.

    ## When it is wrong
    Large learning rates make networks with batch norm jump in eval mode until the rate is lowered;
    nothing is broken then. A few samples with enormous losses rule the mean: a median would be
    calm.

    ## How to confirm
    - Validate twice in a row without training in between: if the two differ, the passes see other
      samples, or the model is not in eval mode.
    - Validate on four times as many samples: jumps that shrink by half came from the split.
    """
    found = facts.validation
    if isinstance(found, str):
        yield erratic_validation.not_examined(found)
    elif len(found) < min_passes:
        yield erratic_validation.not_examined(
            f"{len(found)} of the {min_passes} validation passes needed"
        )
    elif min(found.validation.min(), found.training.min()) <= 0:
        yield erratic_validation.not_examined("a loss of exactly 0 has no logarithm")
    else:
        yield _judge(facts, found, min_jump, min_factor)


def _judge(facts: Facts, found: Curves, min_jump: float, min_factor: float) -> Verdict:
    validation, training = np.log(found.validation), np.log(found.training)
    jump, calm = scatter(validation), scatter(training)
    half, third = len(found) // 2, len(found) // 3
    lasting = min(scatter(validation[:half]), scatter(validation[-half:]))
    trend = abs(np.median(validation[:third]) - np.median(validation[-third:]))
    began = found.constant or float(found.validation[0])
    measured = (
        f"the validation loss strays by {np.expm1(jump):.0%} from pass to pass, the training loss"
        f" by {np.expm1(calm):.0%}"
    )
    if (
        jump < min_jump
        or lasting < min_jump / 2
        or jump < min_factor * calm
        or jump * _TREND < trend
        or np.median(found.validation) < _SMALL * began
    ):
        return erratic_validation.clear(measured)
    return erratic_validation.finding(
        f"{measured}, over {len(found)} passes between {found.validation.min():.4g} and"
        f" {found.validation.max():.4g}",
        confidence=Confidence.HINT,
        onset=int(found.steps[0]),
        evidence=(
            Evidence(
                VAL_LOSS,
                found.span,
                f"typical distance from the neighbours {np.expm1(jump):.0%}; from the first to the"
                f" last third it moved {np.expm1(trend):.0%}",
                found.function,
            ),
            Evidence(LOSS, found.span, f"the same of training {np.expm1(calm):.0%}", found.trained),
            *_batches(facts),
        ),
        fix="validate on more samples, the same ones each time, in eval mode",
    )


def _batches(facts: Facts) -> Iterator[Evidence]:
    """Whether the passes begin with the same batch, where that is known."""
    for model, given in (
        facts.run[VAL_INPUT_FINGERPRINT].items() if VAL_INPUT_FINGERPRINT in facts.run else ()
    ):
        if len(given) > 1:
            differ = len(np.unique(given.values))
            says = f"{differ} different first batches in {len(given)} passes"
            yield Evidence(VAL_INPUT_FINGERPRINT, (given.first, given.last), says, model)
