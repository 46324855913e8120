"""The minimised loss has no lower bound."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.descent import (
    FAR,
    GROWN,
    MIN_SHARE,
    TOLERANCE,
    captured_fall,
    descent_of,
)
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Finding, Level, Severity, Verdict
from holter.record.signals import (
    GRAD_TOTAL_NORM,
    LOSS,
    LOSS_ROOT_SHARE,
    OUTPUT_SIZE,
    WEIGHT_TOTAL_NORM,
)

_WORDS = {OUTPUT_SIZE: "outputs", WEIGHT_TOTAL_NORM: "weights", GRAD_TOTAL_NORM: "gradients"}


@rule(
    severity=Severity.ERROR,
    level=Level.PROCEDURE,
    needs=(LOSS,),
)
def unbounded_loss(
    facts: Facts,
    *,
    min_steps: Annotated[int, "losses needed"] = 5,
    min_share: Annotated[float, "share of the steps with the same negative factor"] = MIN_SHARE,
    tolerance: Annotated[float, "relative deviation from the median factor"] = TOLERANCE,
    far: Annotated[float, "fall below zero, in units of the first loss"] = FAR,
    grown: Annotated[float, "growth of outputs or weights beside such a fall"] = GROWN,
) -> Iterator[Verdict]:
    """The minimised loss has no lower bound.

    ## What it does
    Compares the value on which `backward()` is called with the return value of the loss function,
    and reports if it is a fixed negative multiple of it. It also reports a loss that has fallen
    very far below zero while outputs or weights grew, or that falls below zero at an accelerating
    rate while gradients grow. Of several losses, as in a GAN, it reports one that was captured far
    below zero and ends lower still.

    ## Why it matters
    Minimising the negative of a loss makes predictions worse and worse: the value falls without
    bound, which looks like progress.

    ## Example
    ```python
    (-criterion(model(x), y)).backward()   # bad
    criterion(model(x), y).backward()      # good
    ```

    ## What to do
    Call `backward()` on the loss itself. To maximise a likelihood, minimise its negative once.

    ## When it is wrong
    Unlearning and adversarial training maximise a loss on purpose; adversarial training is not
    examined if each side has its own loss. Negative log-likelihoods of densities fall below zero,
    but not that far.

    ## How to confirm
    - Look at the predictions or the accuracy: it falls below chance.
    """
    fallen = _captured(facts)
    if fallen is not None:
        yield fallen
        return
    curve = facts.signed_curve
    if isinstance(curve, str):
        yield unbounded_loss.not_examined(curve)
        return
    if len(curve) < min_steps:
        yield unbounded_loss.not_examined(f"{len(curve)} of the {min_steps} losses needed")
        return
    descent = descent_of(
        facts, curve, far=far, grown=grown, min_share=min_share, tolerance=tolerance
    )
    course = f"the loss went from {descent.first:.3g} to {descent.end:.3g}"
    loss = Evidence(LOSS, curve.span, course, curve.owner)
    if descent.factor is not None and descent.factor < 0:
        series = facts.run[LOSS_ROOT_SHARE][""]
        confidence = Confidence.CERTAIN
        if not descent.is_negated:
            confidence = Confidence.HINT if descent.growing is None else Confidence.LIKELY
        yield unbounded_loss.finding(
            f"backward() is called on {descent.factor:.3g} times the return value of the loss"
            " function: training makes the predictions worse",
            confidence=confidence,
            onset=series.first,
            evidence=(
                Evidence(
                    LOSS_ROOT_SHARE, (series.first, series.last), f"median {descent.factor:.3g}"
                ),
                loss,
            ),
            fix="remove the minus sign: call `backward()` on the loss itself",
        )
    elif descent.growing is not None:
        yield unbounded_loss.finding(
            f"{course}: it has no lower bound, and {_WORDS[descent.growing]} grow with it",
            confidence=Confidence.LIKELY,
            onset=descent.onset,
            evidence=(loss,),
            fix="look for a term with the wrong sign: a loss must have a lower bound",
        )
    elif descent.factor is not None:
        yield unbounded_loss.clear(
            f"backward() is called on {descent.factor:.3g} times the return value of the loss"
            f" function; {course}"
        )
    else:
        yield unbounded_loss.clear(course)


def _captured(facts: Facts) -> Finding | None:
    """Return the finding for one of several losses that was captured on its way down, or None."""
    fall = captured_fall(facts.run)
    if fall is None:
        return None
    of = f" of {fall.owner}" if fall.owner else ""
    return unbounded_loss.finding(
        f"the loss{of} diverges: {fall.says}, and has no floor",
        confidence=Confidence.LIKELY,
        onset=fall.step,
        evidence=(Evidence(LOSS, fall.span, fall.says, fall.owner),),
        fix="bound what the loss measures: keep the weights of a critic small after each of its"
        " steps, `p.data.clamp_(-0.05, 0.05)`, or add a gradient penalty; or look for a term with"
        " the wrong sign",
    )
