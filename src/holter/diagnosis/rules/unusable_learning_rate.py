"""The learning rate is zero, negative or not a number."""

from collections.abc import Iterator, Mapping

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.streaks import trailing
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of, some
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Finding, Level, Severity, Verdict
from holter.record.signals import LR

_ROUNDING = 1e-6  # a schedule that ends at 0 may miss it by this share of its largest value


@rule(
    severity=Severity.ERROR,
    level=Level.HYPERPARAMETER,
    needs=(LR,),
)
def unusable_learning_rate(
    facts: Facts, *, min_steps: int = 20, min_share: float = 0.25
) -> Iterator[Verdict]:
    """The learning rate is zero, negative or not a number.

    ## What it does
    Looks for a learning rate that is NaN, infinite or negative on any step, and for optimizers
    whose groups all have a learning rate of exactly 0 up to the end of the recording, for at least
    `min_steps` steps and `min_share` of all. A warm-up that begins at 0 and a schedule that ends
    there are shorter than that. Groups of 0 beside others that learn are taken for frozen.

    ## Why it matters
    With 0 nothing is learned, however fine gradients and data are. A negative rate climbs the loss
    instead of descending. One NaN turns every weight into NaN.

    ## What to do
    Print the schedule's factor for every step and look at it. The usual slips: `//` in place of
    `/`, a schedule counted in epochs but stepped every batch (or the reverse), a total number of
    steps that is too small, a factor that runs on below 0 after the end.

    ## When it is wrong
    A rate of 0 on purpose for all groups, to measure or to refresh statistics without learning.
    Optimizers that find their own step and keep `lr` as a placeholder. A negative rate by which an
    adversary or a multiplier is meant to climb; `maximize=True` says so more plainly.

    ## How to confirm
    - Step the scheduler alone in a loop, with no training, and print
      `optimizer.param_groups[0]["lr"]`.
    - Repeat the run with a constant learning rate and no scheduler.
    """
    optimizers: dict[str, dict[str, Series]] = {}
    for owner, rate in facts.run[LR].items():
        if len(rate):
            optimizers.setdefault(owner.rpartition(" group ")[0], {})[owner] = rate
    if not optimizers:
        yield unusable_learning_rate.not_examined("no learning rate was read")
    for name, groups in optimizers.items():
        said = [*_invalid(groups)] or [*_zero(name, groups, min_steps, min_share)]
        yield from said
        if any(isinstance(verdict, Finding) for verdict in said):
            continue
        longest = max(len(rate) for rate in groups.values())
        if longest < min_steps:
            yield unusable_learning_rate.not_examined(
                f"{longest} of the {min_steps} steps needed{of(name)}"
            )
        else:
            lowest = min(float(rate.values.min()) for rate in groups.values())
            highest = max(float(rate.values.max()) for rate in groups.values())
            span = f"{lowest:.3g} to {highest:.3g}" if lowest < highest else f"{highest:.3g}"
            yield unusable_learning_rate.clear(
                f"the learning rate{of(name)} is {span} over {longest} steps"
            )


def _invalid(groups: Mapping[str, Series]) -> Iterator[Verdict]:
    """Groups whose learning rate no step can use."""
    for group, rate in groups.items():
        finite = np.isfinite(rate.values)
        largest = float(np.abs(rate.values[finite]).max(initial=0))
        bad = ~finite | (rate.values < -_ROUNDING * largest)
        if not bad.any():
            continue
        at = int(bad.argmax())
        first, value = int(rate.steps[at]), float(rate.values[at])
        yield unusable_learning_rate.finding(
            f"the learning rate of {group} is {value:.4g} at step {first}"
            + (": it climbs the loss" if np.isfinite(value) else ""),
            confidence=Confidence.CERTAIN,
            onset=first,
            evidence=(
                Evidence(
                    LR,
                    (max(first - 20, 0), first),
                    f"not usable on {int(bad.sum())} of {len(rate)} steps",
                    group,
                ),
            ),
            fix=f"mend the schedule: what it gives for step {first} is not a learning rate",
        )


def _zero(
    name: str, groups: Mapping[str, Series], min_steps: int, min_share: float
) -> Iterator[Verdict]:
    """An optimizer whose groups all end at 0, or the note that some of them are frozen."""
    ends = {group: trailing(rate.values == 0) for group, rate in groups.items()}
    frozen = [group for group, rate in groups.items() if ends[group] == len(rate) >= min_steps]
    if not all(ends.values()):
        if frozen:
            yield unusable_learning_rate.normal(
                f"{len(frozen)} of {len(groups)} groups{of(name)} have a learning rate of 0"
                f" throughout ({some(frozen)}): frozen, while the others learn"
            )
        return
    last_to_end = min(groups, key=lambda group: ends[group])  # the rest was at 0 before it
    rate, count = groups[last_to_end], ends[last_to_end]
    if count < max(min_steps, min_share * len(rate)):
        return
    first, share = int(rate.steps[-count]), count / len(rate)
    since = "from the first step" if share == 1 else f"from step {first}"
    before = "" if share == 1 else f"; {float(rate.values[-count - 1]):.3g} before"
    yield unusable_learning_rate.finding(
        f"the learning rate{of(name)} is exactly 0 {since} to step {rate.last}: nothing is learned",
        severity=Severity.ERROR if share >= 0.9 else Severity.WARNING,
        confidence=Confidence.CERTAIN,
        onset=first,
        explains=("motionless-weights", "flat-loss"),  # 0 makes nothing non-finite
        evidence=(
            Evidence(
                LR,
                (max(first - 20, 0), rate.last),
                f"0 in every group on {count} of {len(rate)} steps{before}",
                last_to_end,
            ),
        ),
        fix="mend the schedule: look for // in place of /, and for epochs counted as steps"
        if share >= 0.9
        else f"stretch the schedule, which ends at step {first}, over the whole training",
    )
