"""The training loss rises above a level it had reached."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.curve import Curve, Levels, growth, levels
from holter.diagnosis.facts.figures import learned_metric
from holter.diagnosis.facts.progress import median_update
from holter.diagnosis.facts.stages import stages
from holter.diagnosis.facts.targets import GROWN, growth_of_targets
from holter.diagnosis.rule import exception, rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAD_TOTAL_NORM, LOSS, UPDATE_RATIO

_PIECES = 10
_RECENT = 199  # last steps before an onset, or of the run, whose updates are compared


@dataclass(frozen=True, slots=True)
class _Rise:
    """Where a curve began to rise, from which level, and to which."""

    onset: int
    first: float
    base: float
    last: float
    says: str
    is_sure: bool = True  # targets cannot explain it
    ends_nonfinite: bool = False


@exception
def growing_targets(facts: Facts, rise: _Rise) -> str | None:
    """The targets grew as much, so the relative error did not rise."""
    growth = growth_of_targets(facts)
    if growth is None or rise.last > GROWN * growth * abs(rise.first):
        return None
    return (
        f"the loss rose from {rise.base:.3g} to {rise.last:.3g}, while the variance of the targets"
        f" grew {growth:.2g} times"
    )


@exception
def risen_metric(facts: Facts, rise: _Rise) -> str | None:
    """The script's metric rose far and ends near its best value: the task got harder."""
    shown = learned_metric(facts.run)
    if shown is None or rise.is_sure:
        return None
    return (
        f"the loss rose from {rise.base:.3g} to {rise.last:.3g}, while `{shown.name}` went from"
        f" {shown.values[0]:.3g} to {shown.last:.3g}"
    )


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LOSS,),
    symptom=True,
    exceptions=(growing_targets, risen_metric),
)
def diverging_loss(
    facts: Facts,
    *,
    min_steps: Annotated[int, "losses needed"] = 40,
    standard_errors: Annotated[float, "times the best level that the last level must exceed"] = 6.0,
    rise: Annotated[
        float, "times the first level, if the best constant prediction is known"
    ] = 1.25,
    unknown_rise: Annotated[float, "the same if the best constant prediction is unknown"] = 3.0,
    explosion: Annotated[float, "times the first level that no change of targets explains"] = 1e3,
    company: Annotated[float, "growth of gradients or updates that makes it likely"] = 3.0,
) -> Iterator[Verdict]:
    """The training loss rises above a level it had reached.

    ## What it does
    Compares the mean loss of ten segments of the curve, so that single spikes do not count; after a
    new optimizer or loss function, only of the part since then. The loss diverges if its last level
    is significantly above the best one, and either above the first one or still rising after losing
    half of its progress. An explosion, or growth that ends in NaN, is detected in fewer steps;
    growing gradients or updates make it likely.

    ## Why it matters
    The weights move away from the solution found so far. Training rarely recovers from this and
    often ends in NaN.

    ## Example
    ```python
    optimizer = Adam(model.parameters(), lr=0.3)    # bad
    optimizer = Adam(model.parameters(), lr=3e-3)   # good
    ```

    ## What to do
    Lower the learning rate 3 to 10 times, or warm it up; clip gradients. Restart from a checkpoint
    before the onset: the weights at the end are worse than those at the start.

    ## When it is wrong
    A task that becomes harder by design: a curriculum, a growing weight of a second loss term,
    adversarial examples. Such runs are a hint at most, unless gradients grow as well. A single jump
    to a new level is reported by `loss-spike`.

    ## How to confirm
    - Continue from a checkpoint before the onset with a third of the learning rate: if the loss
      falls, the steps were too large.
    - Continue from there with a learning rate of 0: if the loss still rises, the data have changed.
    """
    curve = facts.curve
    if isinstance(curve, str):
        yield diverging_loss.not_examined(curve)
        return
    curve = _last_stage(facts, curve, min_steps)
    if len(curve) >= 4 and (burst := _explosion(facts, curve, explosion)):
        yield _finding(facts, curve, burst, company)
        return
    if len(curve) < min_steps:
        yield diverging_loss.not_examined(f"{len(curve)} of the {min_steps} losses needed")
        return
    has_baseline = not isinstance(facts.baseline, str)
    measured = _rise(
        levels(curve, _PIECES), standard_errors, rise if has_baseline else unknown_rise
    )
    if isinstance(measured, str):
        yield diverging_loss.clear(measured)
        return
    sure = has_baseline or measured.last > explosion * abs(measured.first)
    measured = replace(measured, is_sure=sure)
    yield diverging_loss.excused(facts, measured) or _finding(facts, curve, measured, company)


def _last_stage(facts: Facts, curve: Curve, min_steps: int) -> Curve:
    """Return the part of the curve since the last new optimizer or loss function, if long enough.

    Losses of two stages are not compared: each may have a level of its own.
    """
    last = stages(facts, curve)[-1] if len(curve) else curve
    return last if len(last) >= min_steps else curve


def _explosion(facts: Facts, curve: Curve, explosion: float) -> _Rise | None:
    """Return a rise by orders of magnitude, or one that ends non-finite; None if there is none."""
    loss = facts.run[LOSS][curve.owner]
    nonfinite = bool(not np.isfinite(loss.values[-3:]).any())
    first = float(np.median(curve.values[: max(len(curve) // 10, 2)]))
    tail = curve.values[-2:] if nonfinite else curve.values[-3:]
    limit = (10 if nonfinite else explosion) * abs(first)
    if first <= 0 or tail.min() < limit or tail[-1] < 0.1 * curve.values.max():
        return None
    below = np.flatnonzero(curve.values <= 2 * first)
    onset = int(curve.steps[min(int(below[-1]) + 1 if len(below) else 0, len(curve) - 1)])
    says = f"it grew from {first:.3g} to {curve.values[-1]:.3g}" + (
        ", then was no longer finite" if nonfinite else ""
    )
    return _Rise(onset, first, first, float(curve.values[-1]), says, ends_nonfinite=nonfinite)


def _rise(cut: Levels, standard_errors: float, times: float) -> _Rise | str:
    """Return how the loss rises, or why it does not diverge."""
    first, last, best = (
        float(value) for value in (cut.values[0], cut.values[-1], cut.values.min())
    )
    at_best = int(cut.values.argmin())
    if len(cut.values) < _PIECES // 2 or at_best == len(cut.values) - 1:
        return f"the loss ends at its lowest level, {last:.3g}"
    error = float(np.hypot(cut.errors[-1], cut.errors[at_best]))
    height = last - best
    if height <= standard_errors * error:
        return (
            f"the last level, {last:.3g}, is within {height / error if error else 0:.1f} standard"
            f" errors of the best, {best:.3g}"
        )
    margin = times - 1  # a loss may be negative throughout
    falls = cut.values[-2] - last > 4 * error and last < cut.values.max() - 4 * error
    is_above = last - first > max(margin * abs(first), standard_errors * error) and not falls
    ends = cut.values[-4:]
    is_rising = bool(
        ends[-1] - ends[0] > 4 * error
        and (np.diff(ends) > -cut.errors[-3:]).all()
        and height > 0.5 * (first - best)
        and height > margin * abs(best)
    )
    if not is_above and not is_rising:
        return (
            f"the last level is {last:.3g}, the first was {first:.3g}, the best {best:.3g}: it"
            + (" falls again" if falls else " rises no further")
        )
    below = np.flatnonzero(cut.values <= best + standard_errors * error)
    since = min(int(below[-1]) + 1, len(cut.steps) - 1)
    onset = int(cut.steps[since])
    is_sudden = cut.values[since - 1] - best < height / 4  # nothing between low and high
    if (
        is_sudden
        and since + 2 < len(cut.values)
        and last - cut.values[since + 1] < max(2 * error, height / 10)
    ):
        return (
            f"the loss jumped to {cut.values[since + 1]:.3g} at step {onset} and rises no further"
        )
    says = f"it rose from {best:.3g} (at step {cut.steps[at_best]}) to {last:.3g}" + (
        f", above its first level {first:.3g}" if is_above else " and is still rising"
    )
    return _Rise(onset, first, best, last, says)


def _finding(facts: Facts, curve: Curve, rise: _Rise, company: float) -> Verdict:
    others = tuple(_company(facts, curve, rise.onset, company))
    likely = rise.ends_nonfinite or (rise.is_sure and bool(others))
    return diverging_loss.finding(
        f"the loss diverges from step {rise.onset} on: {rise.says}",
        severity=Severity.ERROR if likely else Severity.WARNING,
        confidence=Confidence.LIKELY if likely else Confidence.HINT,
        onset=rise.onset,
        evidence=(
            Evidence(
                LOSS, curve.span, f"{rise.base:.3g} before, {rise.last:.3g} at the end", curve.owner
            ),
            *others,
        ),
        fix=f"restart from a checkpoint before step {rise.onset} with a third of the learning rate,"
        " or warm it up and clip gradients",
    )


def _company(facts: Facts, curve: Curve, onset: int, times: float) -> Iterator[Evidence]:
    """Yield the gradients and updates that grow together with the loss."""
    first, last = curve.span
    before, after = (first, max(onset - 1, first)), (onset, last)
    grown = growth(facts, GRAD_TOTAL_NORM, curve.owner, before, after)
    if grown is not None and grown >= times:
        yield Evidence(
            GRAD_TOTAL_NORM, after, f"gradient norm {grown:.3g} times that before", curve.owner
        )
    early, late = (
        median_update(facts, max(begin, end - _RECENT), end) for begin, end in (before, after)
    )
    if early and late and late >= times * early:
        yield Evidence(UPDATE_RATIO, after, f"relative update {late / early:.3g} times that before")
