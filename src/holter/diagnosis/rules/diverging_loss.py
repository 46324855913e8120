"""The training loss rises away from the level it had."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.facts.curve import Curve, growth, levels
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAD_TOTAL_NORM, LOSS, TARGET_MAX, TARGET_MIN, UPDATE_RATIO

_PIECES = 10
_SURE = 6.0  # standard errors
_OVER = 1.25  # times the first level, where targets are known to stay as they are
_UNKNOWN_OVER = 3.0  # the same where nothing is known of the targets
_EXPLOSION = 1000.0  # times the first level: no change of targets does that
_GREW = 3.0  # times the norm or update of before
_MOVED = 1.5  # a change of the targets by this factor may lift the loss by itself


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LOSS,),
    symptom=True,
)
def diverging_loss(facts: Facts, *, min_steps: int = 40) -> Iterator[Verdict]:
    """The training loss rises away from the level it had.

    ## What it does
    Cuts the curve into tenths and compares their levels, the means of their middle halves, so that
    single spikes do not count. With `min_steps` losses or more the loss diverges if its last level
    is surely, by six standard errors, above the best one, and either a quarter above the first one
    and not from a single jump, or has risen through the last three tenths by more than half of what
    had been gained. Where nothing is known of the targets it must be three times the first level.
    An explosion to a thousand times the first losses, or growth that ends in NaN or infinity, is
    seen in fewer steps. It is likely where gradients or updates grow as well or the loss ends
    non-finite, else a hint.

    ## Why it matters
    The weights move away from everything that was learned. It rarely comes back, and often ends in
    NaN.

    ## What to do
    Lower the learning rate by three to ten times, or warm it up; clip gradients. Go back to a
    checkpoint from before the onset: the weights at the end are worse than those at the start.

    ## When it is wrong
    A task that becomes harder by design: a curriculum, a growing weight of a second loss term,
    adversarial examples. Such runs are a hint at most, unless gradients grow too. Losses of
    competing optimizers, losses that change their sign, and those whose targets grow (value
    functions) are left out.

    ## How to confirm
    - Go on from a checkpoint before the onset with a third of the learning rate: if the loss falls,
      the steps were too large.
    - Go on from there with the learning rate at 0: if the loss still rises, the data have changed.
    """
    curve = facts.curve
    if isinstance(curve, str):
        yield diverging_loss.not_examined(curve)
        return
    if len(curve) >= 4 and (burst := _explosion(facts, curve)):
        yield _finding(facts, curve, burst, known=True)
    elif len(curve) < min_steps:
        yield diverging_loss.not_examined(f"{len(curve)} of the {min_steps} losses needed")
    else:
        yield _judge(facts, curve)


@dataclass(frozen=True, slots=True)
class _Rise:
    """Where a curve began to rise, from which level, and to which."""

    onset: int
    base: float
    last: float
    says: str
    ends_nonfinite: bool


def _explosion(facts: Facts, curve: Curve) -> _Rise | None:
    """A loss that ends orders of magnitude over its first values, or not finite after growing."""
    loss = facts.run[LOSS][curve.owner]
    nonfinite = bool(not np.isfinite(loss.values[-3:]).any())
    first = float(np.median(curve.values[: max(len(curve) // 10, 2)]))
    tail = curve.values[-3:] if not nonfinite else curve.values[-2:]
    over = 10 * abs(first) if nonfinite else _EXPLOSION * abs(first)
    if first <= 0 or tail.min() < over or tail[-1] < 0.1 * curve.values.max():
        return None
    below = np.flatnonzero(curve.values <= 2 * first)
    onset = int(curve.steps[min(int(below[-1]) + 1 if len(below) else 0, len(curve) - 1)])
    says = f"it grew from {first:.4g} to {curve.values[-1]:.3g}" + (
        ", then was no longer finite" if nonfinite else ""
    )
    return _Rise(onset, first, float(curve.values[-1]), says, nonfinite)


def _judge(facts: Facts, curve: Curve) -> Verdict:
    cut = levels(curve, _PIECES)
    first, last, best = cut.values[0], cut.values[-1], cut.values.min()
    at_best = int(cut.values.argmin())
    if len(cut.values) < _PIECES // 2 or at_best == len(cut.values) - 1:
        return diverging_loss.clear(f"the loss ends at its lowest level, {last:.4g}")
    error = float(np.hypot(cut.errors[-1], cut.errors[at_best]))
    rise = last - best
    if rise <= _SURE * error:
        return diverging_loss.clear(
            f"the last level, {last:.4g}, is within {rise / error if error else 0:.1f} standard"
            f" errors of the best, {best:.4g}"
        )
    known = not isinstance(facts.baseline, str)
    margin = (_OVER if known else _UNKNOWN_OVER) - 1  # a loss may be negative throughout
    falls = cut.values[-2] - last > 4 * error and last < cut.values.max() - 4 * error
    is_above = last - first > max(margin * abs(first), _SURE * error) and not falls
    ends = cut.values[-4:]
    is_rising = bool(
        ends[-1] - ends[0] > 4 * error
        and (np.diff(ends) > -cut.errors[-3:]).all()
        and rise > 0.5 * (first - best)
        and rise > margin * abs(best)
    )
    if not is_above and not is_rising:
        return diverging_loss.clear(
            f"the last level is {last:.4g}, the first was {first:.4g}, the best {best:.4g}: it"
            + (" falls again" if falls else " does not rise on")
        )
    if (change := _targets_moved(facts)) is not None:
        return diverging_loss.not_examined(
            f"the targets' range changes {change:.1f}-fold: the loss may rise with it"
        )
    below = np.flatnonzero(cut.values <= best + _SURE * error)
    since = min(int(below[-1]) + 1, len(cut.steps) - 1)
    onset = int(cut.steps[since])
    is_sudden = cut.values[since - 1] - best < rise / 4  # nothing between low and high
    if (
        is_sudden
        and since + 2 < len(cut.values)
        and last - cut.values[since + 1] < max(2 * error, rise / 10)
    ):
        return diverging_loss.clear(
            f"the loss jumped to {cut.values[since + 1]:.4g} about step {onset} and rises no more"
        )
    says = f"it rose from {best:.4g} (steps from {cut.steps[at_best]}) to {last:.4g}" + (
        f", above the {first:.4g} it began with" if is_above else ", and rises on"
    )
    explodes = last > _EXPLOSION * abs(first)
    return _finding(facts, curve, _Rise(onset, best, last, says, False), known=known or explodes)


def _finding(facts: Facts, curve: Curve, rise: _Rise, *, known: bool) -> Verdict:
    others = tuple(_company(facts, curve, rise.onset))
    likely = rise.ends_nonfinite or (known and bool(others))
    return diverging_loss.finding(
        f"the loss diverges from step {rise.onset} on: {rise.says}",
        severity=Severity.ERROR if likely else Severity.WARNING,
        confidence=Confidence.LIKELY if likely else Confidence.HINT,
        onset=rise.onset,
        evidence=(
            Evidence(
                LOSS, curve.span, f"{rise.base:.4g} before, {rise.last:.4g} at the end", curve.owner
            ),
            *others,
        ),
        fix="go back to before the onset with a third of the learning rate, or warm it up and clip"
        " gradients",
    )


def _company(facts: Facts, curve: Curve, onset: int) -> Iterator[Evidence]:
    """What grows together with the loss."""
    first, last = curve.span
    before, after = (first, max(onset - 1, first)), (onset, last)
    if (grew := growth(facts, GRAD_TOTAL_NORM, curve.owner, before, after)) and grew >= _GREW:
        yield Evidence(
            GRAD_TOTAL_NORM,
            after,
            f"gradients are {grew:.3g} times as large as before",
            curve.owner,
        )
    if UPDATE_RATIO in facts.run:
        early, late = (_median_update(facts, *window) for window in (before, after))
        if early and late and late >= _GREW * early:
            yield Evidence(
                UPDATE_RATIO, after, f"updates are {late / early:.3g} times as large as before"
            )


def _median_update(facts: Facts, first: int, last: int) -> float | None:
    rows = facts.run[UPDATE_RATIO].rows(max(first, last - 199), last)
    ratios = rows.values[rows.present & np.isfinite(rows.values)]
    return float(np.median(ratios)) if len(ratios) else None


def _targets_moved(facts: Facts) -> float | None:
    """By how much the targets of a batch, or what a constant answer loses, changed; None if not."""
    found = facts.baseline
    if not isinstance(found, str) and found.drift > _MOVED:
        return found.drift
    function = facts.loss_function
    if function is None:
        return None
    low, high = (readings(facts, signal, function) for signal in (TARGET_MIN, TARGET_MAX))
    if len(low) < 8 or len(low) != len(high):
        return None
    reach = high - low
    early, late = np.median(reach[: len(reach) // 4]), np.median(reach[-len(reach) // 4 :])
    return float(late / early) if early > 0 and late > _MOVED * early else None
