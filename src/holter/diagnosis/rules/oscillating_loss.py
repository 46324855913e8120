"""The loss oscillates without decreasing."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.facts.curve import Curve, rates, running_median, warmed_up
from holter.diagnosis.facts.progress import recent
from holter.diagnosis.facts.robust import Values, midmean, midmean_error, noise
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import DATA_BATCH_SIZE, LOSS, TARGET_COUNT, UPDATE_RATIO

_TREND = 10  # losses in the window of the trend: even, so that two alternating values average
_TURNS = -0.4  # correlation of alternating neighbours; white noise gives -0.1 about the trend
_TURNS_ALONE = -0.7  # the same where the noise of a batch is unknown
_SWINGS = 6  # ups and downs of the smoothed loss
_EVENLY = 0.4  # scatter of the time between them, where the noise of a batch is unknown
_FOLLOWS = 0.5  # correlation from which on a loss follows the size or the order of batches
_SIZES = 20  # steps with a loss and a size that a correlation needs


@dataclass(frozen=True, slots=True)
class _Swings:
    """How a loss oscillates, and the relative update at that time."""

    half: Curve  # the last half of the losses
    says: str
    is_pattern: bool
    update: float | None


@exception
def rate_raised(facts: Facts, swings: _Swings, _: float) -> str | None:
    """The schedule raises the learning rate again, and the loss follows."""
    rate = rates(facts, swings.half.steps)
    rises = (np.diff(rate) > 0.05 * rate.max()).any() or rate[-1] > 1.2 * rate[0]
    if not rises:
        return None
    return f"the loss {swings.says}, while the learning rate rises to {rate.max():.2g} again"


@exception
def batch_sizes(facts: Facts, swings: _Swings, _: float) -> str | None:
    """The loss is a sum that varies with the batch size."""
    correlation = _correlation_with_sizes(facts, swings.half)
    if correlation is None:
        return None
    return f"the loss {swings.says}, with the size of its batches (correlation {correlation:.2f})"


@exception
def epoch_order(facts: Facts, swings: _Swings, _: float) -> str | None:
    """The same batches have a high loss in every epoch, so the data cause the oscillation."""
    half, epoch = swings.half, facts.epoch_steps
    if epoch is None or epoch < 2:
        return None
    shared = np.intersect1d(half.steps + epoch, half.steps, return_indices=True)
    _same, earlier, later = shared
    one, other = half.values[earlier], half.values[later]  # the same batch, an epoch apart
    if len(one) < epoch + _TREND or not one.std() or not other.std():
        return None
    if np.corrcoef(one, other)[0, 1] <= _FOLLOWS:
        return None
    return f"the loss {swings.says}, with the same batches high in every epoch of {epoch} steps"


@exception
def small_updates(_: Facts, swings: _Swings, small_update: float) -> str | None:
    """Weights hardly change, so the difference is between batches."""
    if swings.update is None or swings.update >= small_update:
        return None
    return f"the loss {swings.says}, but the median relative update is {swings.update:.1g} per step"


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LOSS,),
    symptom=True,
    preview=True,
    exceptions=(rate_raised, batch_sizes, epoch_order, small_updates),
)
def oscillating_loss(
    facts: Facts,
    *,
    min_steps: Annotated[int, "losses needed after warm-up"] = 60,
    min_scatter: Annotated[float, "scatter of the loss, as a share of its level"] = 0.1,
    min_fall: Annotated[float, "fall within the last half, as a share, that is progress"] = 0.05,
    min_level: Annotated[
        float, "share of the first loss and of the best constant prediction that is harmless"
    ] = 0.1,
    sampling: Annotated[float, "scatter in sampling errors of a batch mean"] = 3.0,
    large_update: Annotated[float, "relative update that moves a loss back and forth"] = 1e-2,
    small_update: Annotated[float, "relative update that does not"] = 2e-3,
) -> Iterator[Verdict]:
    """The loss oscillates without decreasing.

    ## What it does
    Looks at the last half of a curve that scatters far more than sampling noise and does not fall.
    It must alternate between high and low, oscillate six times or more, or scatter even more at the
    peak learning rate. It is likely if updates are large as well.

    ## Why it matters
    Each step overshoots the minimum. Longer training does not lower the loss below the amplitude of
    the oscillation.

    ## Example
    ```python
    optimizer = SGD(model.parameters(), lr=1.0, momentum=0.99)   # bad
    optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)    # good
    ```

    ## What to do
    Divide the learning rate by 3, or let it decay. With momentum above 0.95, lower it. If the loss
    oscillates from the first step on, add a warm-up.

    ## When it is wrong
    Losses that differ by design from batch to batch: alternating tasks, batches of different
    difficulty, sums over sequences whose lengths are not recorded.

    ## How to confirm
    - Train 100 steps from here with a third of the learning rate: if the loss falls at once, the
      steps were too large.
    - Compute the loss of one fixed batch at ten successive steps: if it oscillates as much, the
      batches are not the cause.
    """
    curve = facts.curve
    if isinstance(curve, str):
        yield oscillating_loss.not_examined(curve)
        return
    warm = warmed_up(facts, curve)
    if warm is None or len(curve) - warm < min_steps:
        yield oscillating_loss.not_examined(
            "the learning rate is still warming up"
            if warm is None
            else f"{len(curve) - warm} of the {min_steps} losses needed after warm-up"
        )
        return
    half = curve.since(max(warm, curve.place(0.5)))
    if len(half) < min_steps // 3:
        yield oscillating_loss.not_examined(
            f"{len(half)} of the {min_steps // 3} losses needed in the last half"
        )
        return
    level = midmean(half.values)
    steady = _steady(half, level, min_scatter, min_fall)
    if steady is not None:
        yield oscillating_loss.clear(steady)
        return
    swings = _swings(facts, half, sampling, min_scatter)
    if isinstance(swings, str):
        yield oscillating_loss.clear(swings)
        return
    limit = min_level * _highest(facts, curve)
    if level < limit:
        yield oscillating_loss.harmless(
            f"the loss {swings.says}, but it is down to {level:.3g}, less than {limit:.3g}"
        )
        return
    sure = (
        swings.is_pattern
        and swings.update is not None
        and swings.update >= large_update
        and _sampling_error(facts) is not None
    )
    yield oscillating_loss.excused(facts, swings, small_update) or _finding(
        facts, swings, level, sure=sure
    )


def _steady(half: Curve, level: float, min_scatter: float, min_fall: float) -> str | None:
    """Return that the loss scatters little or falls, or None."""
    early, late = half.part(0, 0.5), half.part(0.5)
    sigma, fall = noise((early, late)), midmean(early) - midmean(late)
    if sigma < min_scatter * abs(level) or not level:
        if not level:
            return "the loss is 0 in the last half"
        if not sigma:
            return "the loss does not scatter"
        return f"the loss scatters by {percent(sigma / abs(level))} of its level"
    if fall > max(2 * midmean_error(sigma, len(early), len(late)), min_fall * abs(level)):
        return f"the loss fell by {fall:.3g} in the last half"
    return None


def _highest(facts: Facts, curve: Curve) -> float:
    """Return the larger one of the first losses and the best constant prediction."""
    baseline = facts.baseline
    constant = 0.0 if isinstance(baseline, str) else baseline.level * baseline.scale
    return max(midmean(curve.values[: max(len(curve) // 20, 3)]), constant)


def _finding(facts: Facts, swings: _Swings, level: float, *, sure: bool) -> Verdict:
    half = swings.half
    evidence = [Evidence(LOSS, half.span, f"{swings.says}; level {level:.3g}", half.owner)]
    if swings.update is not None:
        evidence.append(
            Evidence(
                UPDATE_RATIO,
                recent(facts),
                f"median relative update {swings.update:.1g} per step",
            )
        )
    return oscillating_loss.finding(
        f"the loss has stalled at {level:.3g} since step {half.span[0]} and {swings.says}",
        confidence=Confidence.LIKELY if sure else Confidence.HINT,
        onset=half.span[0],
        evidence=evidence,
        fix="divide the learning rate by 3, or let it decay",
    )


def _swings(facts: Facts, half: Curve, sampling: float, min_scatter: float) -> _Swings | str:
    """Return how the loss goes up and down beyond sampling noise, or why that is not so."""
    error = _sampling_error(facts)
    scatter = noise((half.part(0, 0.5), half.part(0.5))) / abs(midmean(half.values))
    if error is not None and scatter < sampling * error:
        return (
            f"the loss scatters by {percent(scatter)} of its level; batches of this size explain"
            f" {percent(sampling * error)}"
        )
    update = facts.median_update
    correlation = _neighbours(half)
    needed = _TURNS if error is not None else _TURNS_ALONE
    if correlation is not None and correlation < min(needed, -0.1 - 4 / np.sqrt(len(half))):
        says = f"alternates between high and low (correlation of neighbours {correlation:.2f})"
        return _Swings(half, says, is_pattern=True, update=update)
    turns, size = _turns(half.values, min_scatter)
    between = np.diff(turns)
    if len(between) >= _SWINGS and (error or between.std() < _EVENLY * between.mean()):
        says = f"oscillates {len(between)} times by {size:.3g} or more"
        return _Swings(half, says, is_pattern=True, update=update)
    rate = rates(facts, half.steps)
    if error is not None and scatter > 2 * sampling * error and rate[-1] >= 0.9 * rate.max():
        says = f"scatters by {percent(scatter)} of it while the learning rate stays at its peak"
        return _Swings(half, says, is_pattern=False, update=update)
    return "the losses scatter without a pattern"


def _neighbours(half: Curve) -> float | None:
    """Return the correlation of losses one step apart about their trend, or None with gaps."""
    if len(half) < 2 * _TREND or not (np.diff(half.steps) == 1).all():
        return None
    trend = running_median(half.values, _TREND)
    residuals = half.values[_TREND // 2 : _TREND // 2 + len(trend)] - trend
    bound = 4 * noise((residuals,))
    cut = np.clip(residuals, -bound, bound)
    one, other = cut[:-1], cut[1:]
    if not one.std() or not other.std():
        return None
    return float(np.corrcoef(one, other)[0, 1])


def _turns(values: Values, min_scatter: float) -> tuple[list[int], float]:
    """Return where the smoothed loss turned by more than noise, and by how much at least."""
    smooth = running_median(values, 6)
    jitter = 1.4826 * float(np.median(np.abs(np.diff(values) - np.median(np.diff(values)))))
    least = max(6 * jitter / np.sqrt(2), 2 * min_scatter * abs(float(np.median(values))))
    low = high = float(smooth[0])
    direction = 0
    turns = []
    for at, value in enumerate(smooth.tolist()):
        low, high = min(low, value), max(high, value)
        if direction <= 0 and value - low >= least:
            turns.append(at)
            direction, high = 1, value
        elif direction >= 0 and high - value >= least:
            turns.append(at)
            direction, low = -1, value
    return turns, least


def _correlation_with_sizes(facts: Facts, half: Curve) -> float | None:
    """Return the correlation of losses with the sizes of their batches, or None if it is low."""
    function = facts.loss_function
    counts = list(facts.run[DATA_BATCH_SIZE].values()) if DATA_BATCH_SIZE in facts.run else []
    if function and TARGET_COUNT in facts.run and function in facts.run[TARGET_COUNT]:
        counts.insert(0, facts.run[TARGET_COUNT][function])
    for count in counts:
        _, of_losses, of_sizes = np.intersect1d(half.steps, count.steps, return_indices=True)
        losses, sizes = half.values[of_losses], count.values[of_sizes].astype(np.float64)
        if len(sizes) < _SIZES or not sizes.std() > 0 or not losses.std() > 0:
            continue
        correlation = float(np.corrcoef(losses, sizes)[0, 1])
        if correlation > _FOLLOWS:
            return correlation
    return None


def _sampling_error(facts: Facts) -> float | None:
    """Return the relative error of a batch mean if one sample scatters by the level itself."""
    function = facts.loss_function
    counts = [readings(facts, TARGET_COUNT, function)] if function else []
    if DATA_BATCH_SIZE in facts.run:
        counts += [
            readings(facts, DATA_BATCH_SIZE, loader) for loader in facts.run[DATA_BATCH_SIZE]
        ]
    sizes = [float(np.median(count)) for count in counts if len(count)]
    return 1 / float(np.sqrt(max(min(sizes), 1.0))) if sizes else None
