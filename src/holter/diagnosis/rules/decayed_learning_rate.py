"""The learning rate has decayed away while the loss was still falling."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.progress import Halt, halted, level, median_update
from holter.diagnosis.facts.schedule import GONE, WEAK, Rate
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, LR, UPDATE_RATIO

_NOTHING = 1e-6  # share of its peak at which a rate moves nothing, whatever the loss
_TINY_UPDATE = 1e-4  # relative change of a parameter per step that hardly moves a loss


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LR, LOSS),
)
def decayed_learning_rate(
    facts: Facts, *, min_steps: int = 60, gone: float = 3e-3, min_share: float = 0.3
) -> Iterator[Verdict]:
    """The learning rate has decayed away while the loss was still falling.

    ## What it does
    Looks for a learning rate that is under `gone` of its peak for the last `min_share` of the steps
    of a run of `min_steps` or more. It speaks where the loss was falling when the rate came down to
    a tenth of its peak, and falls by less than half of that, reckoned by doublings of the steps,
    once it is at a hundredth. A rate under a millionth is a hint where the loss is still at more
    than half of its start. A schedule that ends at 0 on the last steps, or that decays
    when the loss is down, is normal. A rate of exactly 0 is left to unusable-learning-rate.

    ## Why it matters
    The run looks converged and is merely stopped. More epochs cost time and change nothing.

    ## What to do
    Stretch the schedule over the whole training, give it a floor (`eta_min`, `min_lr`), or continue
    from the last checkpoint with the rate at which the loss last fell. A `ReduceLROnPlateau` that
    cut the rate while the metric improved has the wrong `mode` or metric.

    ## When it is wrong
    A loss that was about to reach its floor at the very time at which the rate went away.

    ## How to confirm
    - Continue from the last checkpoint with a tenth of the peak: a loss that falls again was held
      by the rate.
    """
    known, loss = facts.rates, facts.falling_loss
    if loss is None or facts.run.steps < min_steps or len(known) != 1:
        yield decayed_learning_rate.not_examined(
            f"{facts.run.steps} steps; it takes {min_steps}, of one"
            " optimizer whose loss has to fall"
        )
        return
    rate = known[0]
    at = rate.first_below(gone)
    share = 1 - at / facts.run.steps
    if share < min_share:
        yield decayed_learning_rate.clear(
            f"the learning rate{of(rate.optimizer)} is under {gone:g} of its peak on the last"
            f" {share:.0%} of the steps"
        )
        return
    if not rate.values[-1]:
        yield decayed_learning_rate.not_examined("the learning rate ends at exactly 0")
        return
    weak = rate.first_below(WEAK)
    halt = halted(facts, loss, weak, rate.first_below(GONE)) or _vanished(
        facts, loss, rate, min_share
    )
    update = median_update(facts, at, facts.run.steps - 1)
    if halt is None or (update is not None and update > _TINY_UPDATE):
        moves = "" if update is None else f"; updates are {update:.1g} of a weight"
        yield decayed_learning_rate.clear(
            f"the loss was down, or went on falling, when the learning rate{of(rate.optimizer)}"
            f" went away at step {weak}{moves}"
        )
        return
    yield _finding(facts, rate, (weak, at), halt, update)


def _vanished(facts: Facts, loss: Series, rate: Rate, min_share: float) -> Halt | None:
    """A loss at more than half of its start, at a rate at which nothing can move any more."""
    since = rate.first_below(_NOTHING)
    start, after = float(np.median(loss.values[:3])), level(loss, since, facts.run.steps)
    if since > (1 - min_share) * facts.run.steps or after is None:
        return None
    return Halt(start, after, after) if start / 2 < after < start else None


def _finding(
    facts: Facts, rate: Rate, lost: tuple[int, int], halt: Halt, update: float | None
) -> Verdict:
    (weak, gone), last = lost, facts.run.steps - 1
    fell = halt.before != halt.after  # it was seen to fall before
    evidence = [
        Evidence(LR, (0, last), f"under a tenth of its peak from step {weak}", rate.group),
        Evidence(LOSS, (0, last), str(halt)),
    ]
    if update is not None:
        says = f"median over all parameters: {update:.1g} a step"
        evidence.append(Evidence(UPDATE_RATIO, (gone, last), says))
    return decayed_learning_rate.finding(
        f"the learning rate{of(rate.optimizer)} is {rate.values[-1]:.2g}, {rate.relative[-1]:.1g}"
        f" of its peak; from step {weak} on it has held the loss: {halt}",
        confidence=Confidence.LIKELY if update is not None and fell else Confidence.HINT,
        onset=weak,
        evidence=evidence,
        fix=f"stretch the schedule, which is over by step {gone}, or give it a floor",
    )
