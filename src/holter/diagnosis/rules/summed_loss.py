"""The loss is a sum over the batch, with a learning rate for a mean."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.facts.progress import median_update, steps_follow_gradients
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS_SUMMED, TARGET_COUNT, UPDATE_RATIO

_LEAP = 0.1  # of itself, by which a first step of SGD ought not to change a weight
_ROSE = 1.5  # times its first value that a loss reaches which steps too large have spoiled
_VARIES = 1.2  # times the number of targets of a small batch that a large one has
_MOST = 0.9  # share of steps
_CALM = 3e-3  # update of the usual weight that is not too large


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LOSS_SUMMED,),
)
def summed_loss(facts: Facts, *, min_steps: int = 5) -> Iterator[Verdict]:
    """The loss is a sum over the batch, with a learning rate for a mean.

    ## What it does
    Looks whether the loss function was asked for `reduction="sum"`, and speaks where it was, on
    nearly all of at least `min_steps` sampled steps, the optimizer's steps are as large as
    gradients are (as in SGD), and weights change by more than 0.3 % a step. Then the loss has to be
    bad: it did not fall, is no longer finite, or the first steps made it half as large again or
    replaced a tenth of the usual weight. A sum that trains well is no fault.

    ## Why it matters
    The gradient of a sum is as many times larger as there are targets in a batch, and so is each
    step of SGD. It changes with the batch size, too.

    ## What to do
    Use `reduction="mean"`, or divide the learning rate by the number of targets in a batch.

    ## When it is wrong
    A sum with a learning rate to match is right; then the loss falls. With Adam the scale hardly
    matters, and the cause lies elsewhere. A loss that cannot fall looks the same if steps are
    large.

    ## How to confirm
    - Divide the loss by the number of targets in the batch and repeat the first 100 steps.
    """
    for owner, summed in facts.run[LOSS_SUMMED].items():
        if len(summed) < min_steps:
            yield summed_loss.not_examined(f"{len(summed)} of the {min_steps} steps needed")
            continue
        if float(np.mean(summed.values)) < _MOST:
            yield summed_loss.clear(f"{owner} does not sum over the batch")
            continue
        if not steps_follow_gradients(facts):
            yield summed_loss.clear(
                f"{owner} sums over the batch, but the optimizer rescales its steps"
            )
            continue
        result, update = facts.outcome, median_update(facts, 0, facts.run.steps)
        if result is None:
            yield summed_loss.not_examined(f"{owner} sums; what came of it cannot be told")
            continue
        calm = result.finite and update is not None and update < _CALM
        count = readings(facts, TARGET_COUNT, owner)
        rose = _rose_at_first(facts, count) or ("" if calm else _leaped_at_first(facts))
        if not rose and (not result.bad or calm):
            moved = f", weights change by {update:.1e} a step" if update is not None else ""
            yield summed_loss.clear(f"{owner} sums over the batch; {result.says}{moved}")
            continue
        times = f"{np.median(count):.0f}" if len(count) else "as many as a batch has targets"
        yield summed_loss.finding(
            f"{owner} sums over the batch: gradients are {times} times those of a mean, and"
            f" {rose or result.says}",
            confidence=Confidence.LIKELY,
            onset=summed.first,
            evidence=(
                Evidence(LOSS_SUMMED, (summed.first, summed.last), "reduction is a sum", owner),
                result.evidence,
            ),
            fix='use reduction="mean", or divide the learning rate by the batch size',
        )


def _rose_at_first(facts: Facts, count: Values) -> str:
    """That the first steps made the loss much worse, in words; nothing if they did not.

    A sum over as many targets as there happen to be rises and falls with their number.
    """
    curve = facts.signed_curve
    varies = len(count) > 0 and np.quantile(count, 0.9) > _VARIES * np.quantile(count, 0.1)
    if isinstance(curve, str) or len(curve) < 3 or curve.values[0] <= 0 or varies:
        return ""
    early = curve.values[: max(10, curve.place(0.1))]
    if early.max() < _ROSE * curve.values[0]:
        return ""
    return f"the loss rose from {curve.values[0]:.3g} to {early.max():.3g} within the first steps"


def _leaped_at_first(facts: Facts) -> str:
    """That the first steps replaced a good part of the weights, in words; nothing if not."""
    if UPDATE_RATIO not in facts.run:
        return ""
    ratios = facts.sample(UPDATE_RATIO, [each.name for each in facts.layers] or None)
    first = ratios.typical()[:5]
    largest = float(np.max(first[np.isfinite(first)], initial=0))
    return f"the first steps changed the usual weight by {largest:.2g}" if largest > _LEAP else ""
