"""The configured learning rate makes the loss rise, or is too low to learn anything."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.rate_range import RangeTest, RateTrial, read
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Finding, Level, Severity, Verdict
from holter.record.signals import (
    LR_RANGE_CONFIGURED,
    LR_RANGE_END,
    LR_RANGE_ERROR,
    LR_RANGE_HELD,
    LR_RANGE_MOVED,
    LR_RANGE_RATE,
    LR_RANGE_START,
)
from holter.record.trials import TrialKind, TrialName

_NEAR = 2.0  # a sweep passes the edge by a few steps: its divergence lies up to so far above it


@dataclass(frozen=True, slots=True)
class Limits:
    """The options of the rule."""

    standard_errors: float
    min_gain: float
    times: float


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(
        LR_RANGE_RATE,
        LR_RANGE_HELD,
        LR_RANGE_ERROR,
        LR_RANGE_START,
        LR_RANGE_MOVED,
        LR_RANGE_CONFIGURED,
    ),
    preview=True,
)
def unsuitable_learning_rate(
    facts: Facts,
    *,
    standard_errors: Annotated[float, "by which the loss must rise at a rate too high"] = 3.0,
    min_gain: Annotated[float, "share of the best gain below which nothing is learned"] = 0.01,
    times: Annotated[float, "as much is gained at the best rate: reported as a hint"] = 10.0,
) -> Iterator[Verdict]:
    """The configured learning rate makes the loss rise, or is too low to learn anything.

    ## What it does
    Reads a learning-rate range test (`holter try lr-range`): sweeps that raise the rate until the
    loss diverges, and short trainings from the same start. The configured rate (the peak of a
    schedule) is too high if a short training with it ends above its initial loss, and too low if it
    gains only a small part of what the best rate gains in as many steps.

    ## Why it matters
    The learning rate is the most important hyperparameter. If it is too high the loss diverges or
    stalls; if it is far too low, training takes days instead of hours.

    ## Example
    ```python
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)   # bad
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)  # good
    ```

    ## What to do
    Use a rate inside the reported interval; its upper half with warm-up and decay. Repeat the test
    if the batch size, the optimizer or the initial weights change.

    ## When it is wrong
    Fine-tuning uses low rates to preserve pretrained features. A schedule with a long warm-up
    tolerates a higher peak than a cold start. A high rate that gains little initially may end lower
    after it has decayed. The loss of reinforcement learning does not measure progress.

    ## How to confirm
    - Train twice for a few hundred steps, with the configured rate and with the suggested one.
    - Repeat the test with another seed: the two intervals should overlap.
    """
    test = read(facts.run)
    if test.problem:
        yield unsuitable_learning_rate.not_examined(test.problem)
    elif not test.trials:
        yield _by_sweeps(test)
    else:
        yield _by_trials(test, Limits(standard_errors, min_gain, times))


def _by_sweeps(test: RangeTest) -> Verdict:
    """Judge by the rate at which sweeps diverge, without short trainings."""
    peak = test.configured["peak"]
    if peak < test.diverges:
        return unsuitable_learning_rate.clear(_clear(test))
    return _finding(
        test,
        f"the configured learning rate is {peak:.2g}; in sweeps the loss diverges at"
        f" {test.diverges:.2g}",
        (_of_sweep(test),),
    )


def _by_trials(test: RangeTest, limits: Limits) -> Verdict:
    peak, good = test.configured["peak"], test.suggestion
    trial = test.trial_at(peak)
    if trial is None:
        return unsuitable_learning_rate.not_examined(f"no short training at {peak:.2g}")
    best, gain = test.gain(test.best), test.gain(trial)
    both = (_of_trial(test, trial), _of_trial(test, test.best))
    if peak > good.high and _rises(test, trial, limits.standard_errors):
        edge = float(np.median([sweep.diverges for sweep in test.sweeps]))
        sure = edge <= _NEAR * peak and not _warms_up(test)
        return _finding(
            test,
            f"with the configured learning rate of {peak:.2g} the loss {_ends(test, trial)};"
            f" with {test.best.rate:.2g} it falls to {test.best.level:.3g}",
            (*both, _of_sweep(test)) if np.isfinite(edge) else both,
            confidence=Confidence.LIKELY if sure else Confidence.HINT,
        )
    is_low = max(peak, test.configured["given"]) < good.low  # a script may warm up by hand
    if is_low and gain < limits.min_gain * best:
        return _finding(
            test,
            f"with the configured learning rate of {peak:.2g} the loss stays at {test.level:.3g};"
            f" with {test.best.rate:.2g} it falls to {test.best.level:.3g} in as many steps",
            both,
            confidence=Confidence.LIKELY,
        )
    if (is_low or peak > good.high) and limits.times * gain <= best:
        return _slow(test, trial, both)
    return unsuitable_learning_rate.clear(_clear(test))


def _slow(test: RangeTest, trial: RateTrial, evidence: tuple[Evidence, ...]) -> Finding:
    return _finding(
        test,
        f"with the configured learning rate of {trial.rate:.2g} the loss {_ends(test, trial)};"
        f" with {test.best.rate:.2g} it falls to {test.best.level:.3g} in as many steps",
        evidence,
        severity=Severity.INFO,
    )


def _finding(
    test: RangeTest,
    summary: str,
    evidence: tuple[Evidence, ...],
    *,
    confidence: Confidence = Confidence.HINT,
    severity: Severity = Severity.WARNING,
) -> Finding:
    good = test.suggestion
    return unsuitable_learning_rate.finding(
        summary,
        confidence=confidence,
        severity=severity,
        onset=0,
        evidence=evidence,
        fix=f"set `lr={good.rate:.2g}` ({good.low:.2g} to {good.high:.2g} perform about as well)",
    )


def _clear(test: RangeTest) -> str:
    peak, good = test.configured["peak"], test.suggestion
    inside = good.low <= peak <= good.high
    place = "inside" if inside else ("above" if peak > good.high else "below")
    compared = (
        f"{peak:.2g} is {place} {good.low:.2g} to {good.high:.2g}; the test suggests"
        f" {good.rate:.2g}"
    )
    trial = test.trial_at(peak)
    if trial is None or inside:
        return compared
    share = max(test.gain(trial) / test.gain(test.best), 0.0)
    return f"{compared}; as configured, a short training gains {percent(share)} of the best"


def _ends(test: RangeTest, trial: RateTrial) -> str:
    if not np.isfinite(trial.level):
        return f"rises from {test.level:.3g} to NaN or infinity"
    way = "rises" if trial.level > test.level else "falls only"
    return f"{way} from {test.level:.3g} to {trial.level:.3g}"


def _rises(test: RangeTest, trial: RateTrial, standard_errors: float) -> bool:
    return not np.isfinite(trial.level) or -test.gain(trial) > standard_errors * test.error(trial)


def _warms_up(test: RangeTest) -> bool:
    return test.configured["now"] < 0.5 * test.configured["peak"]


def _of_trial(test: RangeTest, trial: RateTrial) -> Evidence:
    return Evidence(
        LR_RANGE_END,
        (0, len(trial.end) - 1),
        f"{trial.level:.3g} at the end, {test.level:.3g} at the start",
        trial.name,
    )


def _of_sweep(test: RangeTest) -> Evidence:
    first = test.sweeps[0]
    return Evidence(
        LR_RANGE_HELD,
        (0, len(first.rates) - 1),
        f"above its start from a rate of {test.diverges:.2g}",
        str(TrialName(TrialKind.SWEEP, "0")),
    )
