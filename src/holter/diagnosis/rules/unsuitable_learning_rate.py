"""The configured learning rate is beyond what diverges, or so low that nothing is learned."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.rate_range import RangeTest, RateTrial, read
from holter.diagnosis.rule import rule
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

_SURE = 3.0  # standard errors by which a loss has to rise
_NEAR = 2.0  # a sweep outruns the edge by some steps: so near under it is at it
_NOTHING = 0.01  # share of the best gain that is none


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
def unsuitable_learning_rate(facts: Facts, *, times: float = 10.0) -> Iterator[Verdict]:
    """The configured learning rate is beyond what diverges, or so low that nothing is learned.

    ## What it does
    Reads a learning-rate range test (`holter try lr-range`): sweeps that raise the rate until the
    loss diverges, and short trainings from the same start, at rates about the suggestion and at the
    configured one, which is the peak of a schedule. What counts is the loss of the same few held
    batches. The rate is too high where the short training with it ends above its start, or not
    finite; that is likely where the sweeps diverge there as well, and a hint otherwise or where the
    schedule warms up for longer than a short training can. It is too low where less than 1 % is
    gained with it of what others gain in as many steps. Where others gain `times` as much, that is
    told as a hint and no more. Nothing is said where the test says nothing: weights that do not
    move, a loss that is not finite or never falls beyond noise.

    ## Why it matters
    No other number decides more about a training. Beyond the edge the loss explodes or stays where
    it was; far under it, days go by for what hours would do.

    ## What to do
    Take a rate inside the interval that is shown, its upper half with a warm-up and a decay. If the
    batch size changes, test again: a rate holds for its batch size, optimizer and start only.

    ## When it is wrong
    Fine-tuning is done with low rates on purpose, to keep what was learned before: a rate under the
    interval is then right. A schedule with a long warm-up stands a higher peak than a cold start
    does. A high rate that gains little at first may end lower once it has decayed. The loss of
    reinforcement learning does not say how much was learned. Loaders that do not shuffle, or that
    deliver few batches, test something else than the training; the report says so.

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
        yield _by_trials(test, times)


def _by_sweeps(test: RangeTest) -> Verdict:
    """Without short trainings there is one statistic: where sweeps diverge."""
    peak = test.configured["peak"]
    if peak < test.diverges:
        return unsuitable_learning_rate.clear(_clear(test))
    return _finding(
        test,
        f"the configured learning rate is {peak:.2g}; in sweeps the loss diverges from"
        f" {test.diverges:.2g} on",
        (_of_sweep(test),),
    )


def _by_trials(test: RangeTest, times: float) -> Verdict:
    peak, good = test.configured["peak"], test.suggestion
    trial = test.trial_at(peak)
    if trial is None:
        return unsuitable_learning_rate.not_examined(f"no short training at {peak:.2g}")
    best, gain = test.gain(test.best), test.gain(trial)
    both = (_of_trial(test, trial), _of_trial(test, test.best))
    if peak > good.high and _rises(test, trial):
        edge = float(np.median([each.diverges for each in test.sweeps]))
        sure = edge <= _NEAR * peak and not _warms_up(test)
        return _finding(
            test,
            f"with the configured learning rate of {peak:.2g} the loss {_ends(test, trial)};"
            f" with {test.best.rate:.2g} it falls to {test.best.level:.4g}",
            (*both, _of_sweep(test)) if np.isfinite(edge) else both,
            confidence=Confidence.LIKELY if sure else Confidence.HINT,
        )
    if peak < good.low and test.configured["given"] < good.low:
        if gain < _NOTHING * best:
            return _finding(
                test,
                f"with the configured learning rate of {peak:.2g} the loss does not move from"
                f" {test.level:.4g}; with {test.best.rate:.2g} it falls to {test.best.level:.4g} in"
                " as many steps",
                both,
                confidence=Confidence.LIKELY,
            )
        if times * gain <= best:
            return _slow(test, trial, both)
    if peak > good.high and times * gain <= best:
        return _slow(test, trial, both)
    return unsuitable_learning_rate.clear(_clear(test))


def _slow(test: RangeTest, trial: RateTrial, evidence: tuple[Evidence, ...]) -> Finding:
    return _finding(
        test,
        f"with the configured learning rate of {trial.rate:.2g} the loss {_ends(test, trial)};"
        f" with {test.best.rate:.2g} it falls to {test.best.level:.4g} in as many steps",
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
        fix=f"set the learning rate to about {good.rate:.2g} ({good.low:.2g} to {good.high:.2g}"
        " do about as well)",
    )


def _clear(test: RangeTest) -> str:
    peak, good = test.configured["peak"], test.suggestion
    inside = good.low <= peak <= good.high
    place = "inside" if inside else ("above" if peak > good.high else "under")
    interval = f"{good.low:.2g} .. {good.high:.2g}"
    said = f"{peak:.2g} is {place} {interval}; the test suggests {good.rate:.2g}"
    trial = test.trial_at(peak)
    if trial is None or inside:
        return said
    share = max(test.gain(trial) / test.gain(test.best), 0.0)
    return f"{said}; as configured, a short training gains {share:.0%} of the best"


def _ends(test: RangeTest, trial: RateTrial) -> str:
    if not np.isfinite(trial.level):
        return f"goes from {test.level:.4g} to what is not finite"
    way = "rises" if trial.level > test.level else "falls only"
    return f"{way} from {test.level:.4g} to {trial.level:.4g}"


def _rises(test: RangeTest, trial: RateTrial) -> bool:
    return not np.isfinite(trial.level) or -test.gain(trial) > _SURE * test.error(trial)


def _warms_up(test: RangeTest) -> bool:
    return test.configured["now"] < 0.5 * test.configured["peak"]


def _of_trial(test: RangeTest, trial: RateTrial) -> Evidence:
    return Evidence(
        LR_RANGE_END,
        (0, len(trial.end) - 1),
        f"{trial.level:.4g} at last, {test.level:.4g} at the start",
        trial.name,
    )


def _of_sweep(test: RangeTest) -> Evidence:
    first = test.sweeps[0]
    return Evidence(
        LR_RANGE_HELD,
        (0, len(first.rates) - 1),
        f"above its start from {test.diverges:.2g} on",
        "sweep 0",
    )
