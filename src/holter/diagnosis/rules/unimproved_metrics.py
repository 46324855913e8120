"""The loss falls, but the metrics that the script prints or logs do not improve."""

from collections.abc import Iterator
from math import inf
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.figures import Meaning, Metric, metrics_shown, references
from holter.diagnosis.facts.outcome import OutcomeState
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_CHANCE = {Meaning.ABOVE_ZERO: 0.0, Meaning.ABOVE_HALF: 0.5}
_BASE = {
    Meaning.ABOVE_ZERO: "the best constant prediction has 0",
    Meaning.ABOVE_HALF: "a random order has 0.5",
}
_AROUND = 10  # losses at a step that make a level
_NONE = 0.005  # share of what is right that is nothing
_GOOD = 0.8  # share of what is right, in training, that has to carry over
_EARLY = 0.2  # share of the run by which the first value of a metric that falls has to be shown
_COIN = (0.4, 0.6)  # shares of what is right that a random order or a coin gets
_HALF_MORE = 0.5  # gain of a metric, as a share of its first value, that is an improvement
_FALLS = (Meaning.REWARD, Meaning.SHARE, Meaning.ABOVE_HALF)
_FIX = (
    "compute the metric on a training batch from the tensors passed to the loss, and check the"
    " signs and the argument order of the loss"
)
_DIVERGED = (OutcomeState.DIVERGED, OutcomeState.BROKE)
_SEEMS_WELL = (
    OutcomeState.LEARNED,
    OutcomeState.FALLING,
    OutcomeState.STALLED,
    OutcomeState.UNKNOWN,
)


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(LOSS,),
    symptom=True,
    preview=True,
)
def unimproved_metrics(
    facts: Facts,
    *,
    min_values: Annotated[int, "values of a metric needed"] = 3,
    min_steps: Annotated[int, "steps of training needed"] = 50,
    min_fall: Annotated[float, "fall of the loss, as a share"] = 0.1,
    min_gain: Annotated[float, "gain of a metric that is an improvement"] = 0.05,
    max_share: Annotated[float, "share of what is right that is far from good"] = 0.35,
    lost: Annotated[float, "share of its first value to which a metric fell"] = 0.7,
    min_equal: Annotated[int, "equal values of a metric that never changes"] = 5,
    max_equal: Annotated[float, "value from which on such a metric is not reported"] = 0.9,
    min_rewards: Annotated[int, "values of a reward needed"] = 6,
    min_rise: Annotated[float, "rise of rewards, in their standard deviations"] = 0.2,
    min_drop: Annotated[float, "fall of rewards that is worse, likewise"] = 1.5,
    max_worse: Annotated[float, "share of what is right that is far below a coin's"] = 0.25,
) -> Iterator[Verdict]:
    """The loss falls, but the metrics that the script prints or logs do not improve.

    ## What it does
    Reads the numbers that the script prints after words such as `acc`, `recall`, `R2` or `auc`, or
    passes to `log()`. It reports a metric that ends at the level of a constant prediction or random
    order, by definition (R² at 0, AUC at 0.5) or by the script's own baseline (`naive`,
    `majority`), rewards that do not rise or fall below those of the untrained model, and a set of
    metrics (or of held-out metrics) none of which improves while one is low, falls or never changes
    and the training loss falls or is uninformative.

    ## Why it matters
    The metric is the goal, not the loss. A loss that falls without it is computed from different
    outputs or targets, has a wrong sign or argument order, or falls through something other than
    the task. A metric below that of the untrained model has two common causes: the loss has a wrong
    sign, or updates that are too large have ruined the weights.

    ## Example
    ```python
    loss = F.relu(d_negative - d_positive + margin).mean()   # bad
    loss = F.relu(d_positive - d_negative + margin).mean()   # good
    ```

    ## What to do
    Compute the metric on a training batch, from exactly the tensors passed to the loss. If it is
    bad there, the loss is wrong: check its signs and the order of its arguments. If it is good, the
    evaluation differs: its mode, its inputs, the weights that it uses.

    ## When it is wrong
    A metric that improves only after a long time, such as exact matches of long sequences, or one
    that cannot be improved because the task is nearly random. The task becomes harder during the
    run, as in a curriculum or against a learning opponent.

    ## How to confirm
    - Evaluate on the training data: a working setup improves there first.
    - Run `holter doctor train.py`.
    """
    metrics = [
        each
        for each in metrics_shown(facts.run)
        if len(each.values) >= (min_rewards if each.meaning is Meaning.REWARD else min_values)
    ]
    beaten = [each for each in references(facts.run) if each.is_unbeaten]
    beaten = [each for each in beaten
              if len(each.metric.values) >= min_values or each.metric.is_held_out]  # fmt: skip
    if not metrics and not beaten:
        yield unimproved_metrics.not_examined(
            "the script prints or logs no metric under a known name"
        )
        return
    outcome = facts.run_outcome
    worse = _worsened(metrics, facts, min_rewards, min_drop, max_worse)
    if worse is not None and facts.run.steps >= min_steps and outcome.state not in _DIVERGED:
        yield _finding(
            facts,
            worse,
            " and never rises above its first values, while the loss does not diverge",
            fix="train with a hundredth of the learning rate first, because updates that are too"
            " large ruin a model with any loss; then check the sign of the loss and the order"
            " of its arguments",
        )
        return
    if facts.run.steps < min_steps or outcome.state not in _SEEMS_WELL:
        yield unimproved_metrics.not_examined(
            f"{facts.run.steps} of the {min_steps} steps needed"
            if facts.run.steps < min_steps
            else f"the loss already shows the failure: {outcome.says}"
        )
        return
    if beaten:
        level = f"`{beaten[0].name}` {beaten[0].level:.3g}"
        yield _finding(facts, beaten[0].metric, f" and is never better than {level}")
        return
    rewards = [each for each in metrics if each.meaning is Meaning.REWARD]
    metrics = [each for each in metrics if each.meaning is not Meaning.REWARD]
    if rewards and not metrics and all(each.gain < min_rise for each in rewards):
        yield _finding(facts, rewards[0], ": it does not rise")
        return
    if not metrics:
        best = max(rewards, key=lambda each: each.gain)
        yield unimproved_metrics.clear(
            f"`{best.name}` goes from {best.values[0]:.3g} to {best.last:.3g}"
        )
        return
    useless = [each for each in metrics if _is_useless(each, min_gain)]
    stuck = (
        _stuck(metrics, min_gain, max_share, lost)
        or _fixed(metrics, min_equal, max_equal)
        or _never_right(metrics, min_equal, max_share)
        or _not_carried_over(metrics, min_gain, max_share)
    )
    if useless:
        worst = min(useless, key=lambda each: each.last - _CHANCE[each.meaning])
        yield _finding(facts, worst, f"; {_BASE[worst.meaning]}")
    elif stuck is not None and stuck.is_error and _fall_since(facts, stuck) < min_fall:
        yield unimproved_metrics.clear(f"the loss had fallen before `{stuck.name}` was shown")
    elif stuck is not None and outcome.fall >= min_fall:
        yield _finding(facts, stuck, f", while the loss falls by {percent(outcome.fall)}")
    elif (
        stuck is not None
        and outcome.state is OutcomeState.UNKNOWN
        and len(stuck.values) >= min_rewards
    ):
        yield _finding(facts, stuck, ": it does not improve, and the loss is uninformative")
    elif (
        stuck is not None
        and stuck.meaning is Meaning.SHARE
        and stuck.best <= max_share
        and len(stuck.values) >= min_rewards
    ):
        yield _finding(facts, stuck, f", and the loss hardly falls, by {percent(outcome.fall)}")
    else:
        best = max(metrics, key=lambda each: each.gain)
        yield unimproved_metrics.clear(
            f"`{best.name}` goes from {best.values[0]:.3g} to {best.last:.3g}"
        )


def _worsened(
    metrics: list[Metric], facts: Facts, min_values: int, min_drop: float, max_worse: float
) -> Metric | None:
    """Return a metric that training makes worse than that of the untrained model, if all are."""
    shown = [
        each
        for each in metrics
        if each.meaning in _FALLS
        and len(each.values) >= min_values
        and float(each.steps[0]) <= _EARLY * facts.run.steps
    ]
    for each in shown:
        is_earned = facts.no_order is not None and each.meaning is Meaning.SHARE  # by a policy
        if each.meaning is Meaning.REWARD or is_earned:
            is_worse = _earns_less(each, min_drop)
        else:
            is_worse = _COIN[0] <= each.values[0] <= _COIN[1] and each.last <= max_worse
        if not is_worse or not _only_falls(each):  # another one says that the training works
            return None
    return shown[0] if shown else None


def _earns_less(metric: Metric, min_drop: float) -> bool:
    """Whether a reward ends far below that of the untrained model, beside its scatter."""
    first, last = _ends(metric)
    return float(first.mean() - last.mean()) > min_drop * float(np.std(metric.values))


def _only_falls(metric: Metric) -> bool:
    """Whether a metric ends below its first values, and was never above them."""
    first, last = _ends(metric)
    return bool(last.max() < first.min() and metric.values.max() <= first.max())


def _ends(metric: Metric) -> tuple[Values, Values]:
    """Return the first and the last third of the values."""
    count = max(len(metric.values) // 3, 1)
    return metric.values[:count], metric.values[-count:]


def _fall_since(facts: Facts, metric: Metric) -> float:
    """Return the fall of the loss since a metric was first shown, as a share of its level then."""
    curve = facts.signed_curve
    if isinstance(curve, str):
        return inf
    around = np.abs(curve.steps - metric.steps[0]).argsort()[:_AROUND]
    before = float(np.median(curve.values[around]))
    return (before - float(np.median(curve.part(0.9)))) / max(abs(before), 1e-30)


def _is_useless(metric: Metric, min_gain: float) -> bool:
    """Whether a metric ends where it is by definition without any knowledge of the inputs."""
    chance = _CHANCE.get(metric.meaning)
    return chance is not None and float(metric.values.max()) <= chance + min_gain


def _stuck(metrics: list[Metric], min_gain: float, max_share: float, lost: float) -> Metric | None:
    """Return a metric that is low or falls, if no metric improves; else None."""
    if any(each.gain > min_gain for each in metrics):
        return None
    shares = [each for each in metrics if each.meaning is Meaning.SHARE]
    bad = [e for e in shares if e.last <= max_share or e.last < lost * float(e.values[0])]
    bad += [each for each in metrics if each.meaning is Meaning.ERROR and not shares]
    return bad[0] if bad else None


def _fixed(metrics: list[Metric], min_equal: int, max_equal: float) -> Metric | None:
    """Return a share that shows the same value every time, as one constant prediction gets."""
    shares = [each for each in metrics if each.meaning is Meaning.SHARE]
    if any(np.ptp(each.values) > 0 for each in shares):
        return None
    return next((e for e in shares if len(e.values) >= min_equal and e.last < max_equal), None)


def _never_right(metrics: list[Metric], min_equal: int, max_share: float) -> Metric | None:
    """Return a share that stays at 0 beside others that are all low, or None."""
    shares = [each for each in metrics if each.meaning is Meaning.SHARE]
    if any(each.best > max_share for each in shares):
        return None
    return next((e for e in shares if len(e.values) >= min_equal and e.best < _NONE), None)


def _not_carried_over(metrics: list[Metric], min_gain: float, max_share: float) -> Metric | None:
    """Return a low share of held-out data if none of them improves while others do, or None."""
    shares = [each for each in metrics if each.meaning is Meaning.SHARE]
    held_out = [each for each in shares if each.is_held_out]
    others = [each for each in shares if not each.is_held_out]
    if not any(each.gain > min_gain and each.last > _GOOD for each in others):
        return None
    if any(each.best > max_share or _improved(each, min_gain) for each in held_out):
        return None
    return held_out[0] if held_out else None


def _improved(metric: Metric, min_gain: float) -> bool:
    first = float(metric.values[0])
    return metric.gain > min_gain or metric.gain > _HALF_MORE * first or metric.improves


def _finding(facts: Facts, metric: Metric, against: str, *, fix: str = _FIX) -> Verdict:
    first, last = int(metric.steps[0]), int(metric.steps[-1])
    course = f"`{metric.name}` goes from {metric.values[0]:.3g} to {metric.last:.3g}"
    span = (min(first, facts.run.steps - 1), min(last, facts.run.steps - 1))
    return unimproved_metrics.finding(
        f"the script's metric {course}{against}",
        confidence=Confidence.HINT,
        onset=span[0],
        evidence=(Evidence(LOSS, span, f"{facts.run_outcome.says}; {course}"),),
        fix=fix,
    )
