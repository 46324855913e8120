"""A loss between distributions receives unnormalised values."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    DISTRIBUTION_LOG_NORMALISER,
    DISTRIBUTION_MAX,
    DISTRIBUTION_SUM,
    DISTRIBUTION_TARGET_MIN,
    DISTRIBUTION_TARGET_SUM,
    Signal,
)


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(DISTRIBUTION_LOG_NORMALISER,),
)
def unnormalised_distributions(
    facts: Facts,
    *,
    min_steps: Annotated[int, "sampled steps needed"] = 3,
    tolerance: Annotated[float, "deviation of a sum of shares from 1, or of its log from 0"] = 0.1,
) -> Iterator[Verdict]:
    """A loss between distributions receives unnormalised values.

    ## What it does
    Checks the inputs of `F.kl_div` and `F.ctc_loss`. It reports a first argument whose exponentials
    do not sum to 1 over any axis, and targets of `kl_div` that are below 0 or do not sum to 1.

    ## Why it matters
    These losses expect log-probabilities as the first argument, and `kl_div` probabilities as
    targets, but do not check it: for logits or probabilities they return a meaningless value, often
    below 0, that falls as if training made progress.

    ## Example
    ```python
    F.kl_div(student.softmax(1), teacher.softmax(1))                                # bad
    F.kl_div(student.log_softmax(1), teacher.softmax(1), reduction="batchmean")     # good
    ```

    ## What to do
    Pass `log_softmax(x, dim)` first. Pass `softmax(y, dim)` as the target of `kl_div`, or
    `log_softmax(y, dim)` with `log_target=True`.

    ## When it is wrong
    Measures that are deliberately unnormalised, as in a generalised Kullback-Leibler divergence, or
    independent distributions per unit; these give a hint.

    ## How to confirm
    - Print `x.exp().sum(dim)` of the first argument: it should be 1.
    """
    for function in facts.run[DISTRIBUTION_LOG_NORMALISER]:
        wrong = [
            *_first(facts, function, tolerance, min_steps),
            *_target(facts, function, tolerance, min_steps),
        ]
        steps = len(readings(facts, DISTRIBUTION_LOG_NORMALISER, function))
        if wrong:
            yield wrong[0]
        elif steps < min_steps:
            yield unnormalised_distributions.not_examined(
                f"{steps} of the {min_steps} sampled steps needed"
            )
        else:
            yield unnormalised_distributions.clear(
                f"{function} receives log-probabilities on {steps} sampled steps"
            )


def _first(facts: Facts, function: str, tolerance: float, min_steps: int) -> Iterator[Verdict]:
    """Report a first argument that is no logarithm of probabilities.

    One that is has a sum of 1 on every step; training may lead others there.
    """
    logs = readings(facts, DISTRIBUTION_LOG_NORMALISER, function)
    apart = logs[np.abs(logs) > tolerance]
    if len(apart) < min_steps:
        return
    log = float(np.median(apart))
    sums = readings(facts, DISTRIBUTION_SUM, function)
    is_share = len(sums) >= min_steps and abs(float(np.median(sums)) - 1) <= tolerance
    above = readings(facts, DISTRIBUTION_MAX, function)
    confidence = Confidence.HINT  # logarithms of shares that belong to no whole
    if is_share:
        confidence = Confidence.CERTAIN
    elif len(above) and float(np.median(above)) > tolerance:
        confidence = Confidence.LIKELY
    given = "probabilities" if is_share else "numbers such as logits"
    yield unnormalised_distributions.finding(
        f"{function} receives {given} instead of log-probabilities: their log-sum-exp is {log:.3g}"
        f" instead of 0 on {len(apart)} of {len(logs)} sampled steps",
        confidence=confidence,
        onset=_onset(facts, DISTRIBUTION_LOG_NORMALISER, function),
        evidence=(_evidence(facts, DISTRIBUTION_LOG_NORMALISER, function, f"median {log:.3g}"),),
        fix="pass `log_softmax(x, dim)` as the first argument",
    )


def _target(facts: Facts, function: str, tolerance: float, min_steps: int) -> Iterator[Verdict]:
    """Report targets that are no probabilities."""
    least = readings(facts, DISTRIBUTION_TARGET_MIN, function)
    sums = readings(facts, DISTRIBUTION_TARGET_SUM, function)
    if len(sums) < min_steps or len(least) < min_steps:
        return
    low, total = float(np.median(least)), float(np.median(sums))
    if low >= -tolerance and abs(total - 1) <= tolerance:
        return
    are_logs = low < -tolerance
    fix = "pass `softmax(y, dim)` as the target"
    if are_logs:
        fix += ", or `log_target=True` with log-probabilities"
    yield unnormalised_distributions.finding(
        f"targets of {function} are not probabilities: the smallest is {low:.3g}, and they sum to"
        f" {total:.3g}",
        confidence=Confidence.CERTAIN if are_logs else Confidence.HINT,
        onset=_onset(facts, DISTRIBUTION_TARGET_SUM, function),
        evidence=(
            _evidence(facts, DISTRIBUTION_TARGET_MIN, function, f"median {low:.3g}"),
            _evidence(facts, DISTRIBUTION_TARGET_SUM, function, f"median {total:.3g}"),
        ),
        fix=fix,
    )


def _onset(facts: Facts, signal: Signal, function: str) -> int:
    """The first step of the training: what a loss is given is so from the start, read or not."""
    first = facts.run[signal][function].first
    return facts.stage_start if first >= facts.stage_start else first


def _evidence(facts: Facts, signal: Signal, function: str, says: str) -> Evidence:
    series = facts.run[signal][function]
    return Evidence(signal, (series.first, series.last), says, function)
