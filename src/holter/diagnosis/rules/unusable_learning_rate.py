"""The learning rate is zero, negative or not finite."""

from collections.abc import Iterator, Mapping
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.streaks import trailing
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import number, of, some
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Finding, Level, Severity, Verdict
from holter.record.signals import LR

_ROUNDING = 1e-6  # share of its largest value by which a schedule that ends at 0 may miss it


@rule(
    severity=Severity.ERROR,
    level=Level.HYPERPARAMETER,
    needs=(LR,),
    preview=True,
)
def unusable_learning_rate(
    facts: Facts,
    *,
    min_steps: Annotated[int, "steps at a learning rate of 0"] = 20,
    min_share: Annotated[float, "share of the run at a learning rate of 0"] = 0.25,
    error_share: Annotated[float, "share of the run at 0 from which it is an error"] = 0.9,
) -> Iterator[Verdict]:
    """The learning rate is zero, negative or not finite.

    ## What it does
    Looks for a learning rate that is NaN, infinite or negative on any step, and for optimizers
    whose groups all stay at exactly 0 until the end of the run. A warm-up that starts at 0 and a
    schedule that ends there are too short to count. A group with rate 0 next to others that train
    is treated as frozen.

    ## Why it matters
    A rate of 0 changes no weight. A negative rate increases the loss. A single NaN makes every
    weight NaN.

    ## Example
    ```python
    LambdaLR(optimizer, lambda step: (total - step) // total)  # bad
    LambdaLR(optimizer, lambda step: (total - step) / total)   # good
    ```

    ## What to do
    Print the schedule's factor for every step. Common mistakes: `//` instead of `/`, a schedule
    counted in epochs but stepped every batch (or the reverse), a total number of steps that is too
    small, a factor that falls below 0 after the end.

    ## When it is wrong
    A rate of 0 for all groups may be intended, to measure something without training. Some
    optimizers choose their own step size and keep `lr` as a placeholder. A negative rate may be
    intended for gradient ascent; use `maximize=True` instead.

    ## How to confirm
    - Step the scheduler in a loop without training and print `optimizer.param_groups[0]["lr"]`.
    - Repeat the run with a constant learning rate and no scheduler.
    """
    optimizers: dict[str, dict[str, Series]] = {}
    for owner, rate in facts.run[LR].items():
        if len(rate):
            optimizers.setdefault(owner.rpartition(" group ")[0], {})[owner] = rate
    if not optimizers:
        yield unusable_learning_rate.not_examined("no learning rate was recorded")
    for name, groups in optimizers.items():
        verdicts = [*_invalid(groups)] or [
            *_zero(name, groups, min_steps, min_share, error_share=error_share)
        ]
        yield from verdicts
        if any(isinstance(verdict, Finding) for verdict in verdicts):
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
    """Report groups whose learning rate is negative or not finite."""
    for group, rate in groups.items():
        finite = np.isfinite(rate.values)
        largest = float(np.abs(rate.values[finite]).max(initial=0))
        bad = ~finite | (rate.values < -_ROUNDING * largest)
        if not bad.any():
            continue
        index = int(bad.argmax())
        first, value = int(rate.steps[index]), float(rate.values[index])
        yield unusable_learning_rate.finding(
            f"the learning rate{of(group)} is {number(value)} at step {first}"
            + (": updates increase the loss" if np.isfinite(value) else ""),
            confidence=Confidence.CERTAIN,
            onset=first,
            evidence=(
                Evidence(
                    LR,
                    (max(first - 20, 0), first),
                    f"negative or not finite on {int(bad.sum())} of {len(rate)} steps",
                    group,
                ),
            ),
            fix=f"correct the schedule: it returns {number(value)} for step {first}",
        )


def _zero(
    name: str,
    groups: Mapping[str, Series],
    min_steps: int,
    min_share: float,
    *,
    error_share: float,
) -> Iterator[Verdict]:
    """Report an optimizer whose groups all end at 0, or note that some of them are frozen."""
    zeros = {group: trailing(rate.values == 0) for group, rate in groups.items()}
    frozen = [group for group, rate in groups.items() if zeros[group] == len(rate) >= min_steps]
    if not all(zeros.values()):
        if frozen:
            yield unusable_learning_rate.normal(
                f"{len(frozen)} of {len(groups)} groups{of(name)} have a learning rate of 0"
                f" throughout ({some(frozen)}): they are frozen, the others train"
            )
        return
    last_to_end = min(groups, key=lambda group: zeros[group])
    rate, count = groups[last_to_end], zeros[last_to_end]
    if count < max(min_steps, min_share * len(rate)):
        return
    first, share = int(rate.steps[-count]), count / len(rate)
    since = "from the first step" if share == 1 else f"from step {first}"
    before = "" if share == 1 else f"; {float(rate.values[-count - 1]):.3g} before"
    yield unusable_learning_rate.finding(
        f"the learning rate{of(name)} is exactly 0 {since} to step {rate.last}: no weight changes",
        severity=Severity.ERROR if share >= error_share else Severity.WARNING,
        confidence=Confidence.CERTAIN,
        onset=first,
        # a rate of 0 makes nothing non-finite, and is what a decay ended in
        explains=("no-learning", "motionless-weights", "decayed-learning-rate"),
        evidence=(
            Evidence(
                LR,
                (max(first - 20, 0), rate.last),
                f"0 in every group on {count} of {len(rate)} steps{before}",
                last_to_end,
            ),
        ),
        fix="correct the schedule: look for `//` instead of `/`, and for epochs counted as steps"
        if share >= error_share
        else f"stretch the schedule, which ends at step {first}, over the whole run",
    )
