"""The learning rate decayed to almost nothing while the loss was still falling."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.progress import Halt, halted, level, median_update
from holter.diagnosis.facts.schedule import GONE, WEAK, Rate
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of, percent, unmet
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, LR, UPDATE_RATIO


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LR, LOSS),
)
def decayed_learning_rate(
    facts: Facts,
    *,
    min_steps: Annotated[int, "steps needed"] = 60,
    gone: Annotated[float, "share of its peak below which the rate has vanished"] = 3e-3,
    min_share: Annotated[float, "final share of the run with a vanished rate"] = 0.3,
    nothing: Annotated[float, "share of its peak at which the rate has no effect"] = 1e-6,
    tiny_update: Annotated[float, "relative update that hardly changes the loss"] = 1e-4,
) -> Iterator[Verdict]:
    """The learning rate decayed to almost nothing while the loss was still falling.

    ## What it does
    Looks for a learning rate that is a tiny share of its peak for the last part of the run. It
    reports it if the loss was falling when the rate reached 10 % of its peak, and falls by less
    than half as much per doubling of the steps once the rate is at 1 %. A rate near zero with a
    loss above half of its initial value is a hint.

    ## Why it matters
    The run looks converged, but only the learning rate stopped it. More epochs cost time and change
    nothing.

    ## Example
    ```python
    scheduler = ExponentialLR(optimizer, gamma=0.97)                   # bad
    scheduler = CosineAnnealingLR(optimizer, T_max=epochs * batches)   # good
    ```

    ## What to do
    Stretch the schedule over the whole run, give it a floor (`eta_min`, `min_lr`), or continue from
    the last checkpoint with the rate at which the loss last fell. A `ReduceLROnPlateau` that cut
    the rate while the metric improved has the wrong `mode` or metric.

    ## When it is wrong
    The loss may have reached its floor at the same time as the rate decayed.

    ## How to confirm
    - Continue from the last checkpoint at 10 % of the peak rate: if the loss falls again, the rate
      had stopped it.
    """
    loss = facts.falling_loss
    if loss is None or facts.run.steps < min_steps or len(facts.rates) != 1:
        yield decayed_learning_rate.not_examined(
            unmet(
                (loss is not None, "no single loss that is never negative"),
                (
                    facts.run.steps >= min_steps,
                    f"{facts.run.steps} of the {min_steps} steps needed",
                ),
                (len(facts.rates) == 1, f"{len(facts.rates)} learning rates instead of one"),
            )
        )
        return
    (rate,) = facts.rates
    since = rate.first_below(gone)
    share = 1 - since / facts.run.steps
    if share < min_share:
        yield decayed_learning_rate.clear(
            f"the learning rate{of(rate.optimizer)} is below {percent(gone)} of its peak on the"
            f" last {percent(share)} of the steps"
            if share > 0
            else f"the learning rate{of(rate.optimizer)} never falls below {percent(gone)} of its"
            " peak"
        )
        return
    if level(loss, since, facts.run.steps) is None:
        yield decayed_learning_rate.not_examined(f"too few losses after step {since}")
        return
    weak = rate.first_below(WEAK)
    halt = halted(facts, loss, weak, rate.first_below(GONE)) or _vanished(
        facts, loss, rate.first_below(nothing), min_share
    )
    if halt is None:
        yield decayed_learning_rate.harmless(
            f"the learning rate{of(rate.optimizer)} is below {percent(gone)} of its peak from step"
            f" {since}; the loss was already low by then, or is still falling"
        )
        return
    update = median_update(facts, since, facts.run.steps - 1)
    likely = update is not None and update <= tiny_update and halt.before != halt.after
    yield _finding(facts, rate, halt, weak=weak, gone=since, update=update, likely=likely)


def _vanished(facts: Facts, loss: Series, since: int, min_share: float) -> Halt | None:
    """Return the halt of a loss above half of its start, at a rate that changes no weight."""
    start, after = float(np.median(loss.values[:3])), level(loss, since, facts.run.steps)
    if since > (1 - min_share) * facts.run.steps or after is None:
        return None
    return Halt(start, after, after) if start / 2 < after < start else None


def _finding(
    facts: Facts,
    rate: Rate,
    halt: Halt,
    *,
    weak: int,
    gone: int,
    update: float | None,
    likely: bool,
) -> Verdict:
    last = facts.run.steps - 1
    evidence = [
        Evidence(LR, (0, last), f"below 10 % of its peak from step {weak}", rate.group),
        Evidence(LOSS, (0, last), str(halt)),
    ]
    if update is not None:
        says = f"median relative update {update:.1g} per step"
        evidence.append(Evidence(UPDATE_RATIO, (gone, last), says))
    return decayed_learning_rate.finding(
        f"the learning rate{of(rate.optimizer)} fell to {rate.values[-1]:.2g},"
        f" {rate.relative[-1]:.1g} of its peak; the loss stopped at step {weak}: {halt}",
        confidence=Confidence.LIKELY if likely else Confidence.HINT,
        onset=weak,
        evidence=evidence,
        fix=f"stretch the schedule, which ends by step {gone}, over the whole run, or give it a"
        f" floor: `eta_min={WEAK * rate.peak:.1g}`",
    )
