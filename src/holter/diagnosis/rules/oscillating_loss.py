"""The loss swings up and down without getting lower."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.facts.curve import (
    Curve,
    rates,
    running_median,
    warmed_up,
)
from holter.diagnosis.facts.progress import recent
from holter.diagnosis.facts.robust import Values, midmean, midmean_error, noise
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import DATA_BATCH_SIZE, LOSS, TARGET_COUNT, UPDATE_RATIO

_TREND = 10  # losses in the window of the trend: even, so that two values taking turns average
_TURNS = -0.4  # correlation of neighbours that take turns; white noise gives -0.1 about the trend
_TURNS_ALONE = -0.7  # the same where the noise of a batch is unknown
_SWINGS = 6  # ups and downs of the smoothed loss
_EVENLY = 0.4  # scatter of the time between them, where the noise of a batch is unknown
_LARGE = 0.1  # share of the level: smaller swings harm nothing
_SAMPLING = 3.0  # noise of a sample's loss, in levels, that a batch may have; 1 is usual
_PROGRESS = 0.05  # share of the level by which a loss falls that has not stalled
_LOW = 0.1  # share of the first loss, or of a constant answer's, under which swings do not count
_BY_SIZE = 0.5  # correlation with the size of the batch from which on a loss follows that
_SIZES = 20  # steps whose size has to be known for it
_LARGE_UPDATE = 1e-2  # relative change of a parameter per step that moves the loss back and forth
_SMALL_UPDATE = 2e-3  # and one that does not


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LOSS,),
    symptom=True,
    preview=True,
)
def oscillating_loss(facts: Facts, *, min_steps: int = 60) -> Iterator[Verdict]:
    """The loss swings up and down without getting lower.

    ## What it does
    Looks at the last half of the curve, at least `min_steps` losses after warm-up in all. The loss
    must have stalled there, above a tenth of its first level and of what a constant answer gives,
    and must not follow the number of samples or targets of its batches, as sums do. Then it looks
    for one of three shapes. *Taking turns*: high after low after high, seen as a correlation of
    neighbours under -0.4. *Swings*: six or more ups and downs of the smoothed loss, each far larger
    than the noise. *Noise floor*: scatter far beyond what batches of this size give, while the
    learning rate stays at its peak. In each case the scatter must be a tenth of the level and more
    than three times the sampling noise of such batches. It is likely where updates are large as
    well (1 % of a parameter a step), and a hint where they or the size of batches are not known; a
    noise floor is never more than a hint.

    ## Why it matters
    Each step overshoots the valley it aims at. The loss cannot get lower than the width of these
    swings, however long it trains.

    ## What to do
    Lower the learning rate by three times, or let it decay. With momentum over 0.95, lower that. If
    it swings from the first step on, add a warm-up.

    ## When it is wrong
    Losses that differ by design from batch to batch: alternating tasks, batches of unlike
    difficulty, sums over sequences whose lengths are not known. Swings that follow the order of the
    data or a cycling learning rate are left out; small batches are, too, as their noise is no
    swing.

    ## How to confirm
    - Train 100 steps from here with a third of the learning rate: a loss that falls at once was
      held up by the swings.
    - Compute the loss of one fixed batch at ten successive steps: if that swings as much, it is
      not the batches.
    """
    curve = facts.curve
    if isinstance(curve, str):
        yield oscillating_loss.not_examined(curve)
        return
    warm = warmed_up(facts, curve)
    if warm is None or len(curve) - warm < min_steps:
        yield oscillating_loss.not_examined(
            f"{len(curve) - (warm or 0)} of the {min_steps} losses needed after warm-up"
        )
        return
    half = curve.since(max(warm, curve.place(0.5)))
    if len(half) < min_steps // 3:
        yield oscillating_loss.not_examined("too few losses in the last half")
        return
    yield _judge(facts, curve, half)


def _judge(facts: Facts, curve: Curve, half: Curve) -> Verdict:
    level = midmean(half.values)
    early, late = half.part(0, 0.5), half.part(0.5)
    sigma = noise((early, late))
    fall = midmean(early) - midmean(late)
    scatter = sigma / abs(level) if level else 0.0
    if scatter < _LARGE:
        return oscillating_loss.clear(f"the loss scatters by {scatter:.1%} of its level")
    if fall > max(2 * midmean_error(sigma, len(early), len(late)), _PROGRESS * abs(level)):
        return oscillating_loss.clear(f"the loss fell by {fall:.3g} in the last half")
    known = facts.baseline
    constant = 0.0 if isinstance(known, str) else known.level * known.scale
    if level < _LOW * max(midmean(curve.values[: max(len(curve) // 20, 3)]), constant):
        return oscillating_loss.clear(f"the loss is down to {level:.3g}, where swings do no harm")
    rate = rates(facts, half.steps)
    if (np.diff(rate) > 0.05 * rate.max()).any() or (len(rate) and rate[-1] > 1.2 * rate[0]):
        return oscillating_loss.clear("the learning rate itself goes up again in the last half")
    sampling = _sampling_noise(facts)
    if sampling is not None and scatter < _SAMPLING * sampling:
        return oscillating_loss.clear(
            f"the loss scatters by {scatter:.1%} of its level; batches of this size may give"
            f" {_SAMPLING * sampling:.1%}"
        )
    if (alike := _follows_sizes(facts, half)) is not None:
        return oscillating_loss.clear(
            f"the losses go up and down with the size of their batches (correlation {alike:.2f})"
        )
    shape = _shape(facts, half, sampling, scatter, steady=bool(rate[-1] >= 0.9 * rate.max()))
    update = facts.median_update
    if shape is None:
        return oscillating_loss.clear("the losses scatter without pattern")
    if update is not None and update < _SMALL_UPDATE:
        return oscillating_loss.clear(
            f"the loss {shape.says}, but weights change by {update:.1g} a step only"
        )
    large = update is not None and update >= _LARGE_UPDATE and sampling is not None
    evidence = [Evidence(LOSS, half.span, f"{shape.says}; level {level:.4g}", half.owner)]
    if update is not None:
        evidence.append(
            Evidence(UPDATE_RATIO, recent(facts), f"weights change by {update:.1g} a step (median)")
        )
    return oscillating_loss.finding(
        f"the loss has stalled at {level:.4g} since step {half.span[0]}, and {shape.says}",
        confidence=Confidence.LIKELY if large and shape.is_pattern else Confidence.HINT,
        onset=half.span[0],
        evidence=evidence,
        fix="lower the learning rate by three times, or let it decay",
    )


@dataclass(frozen=True, slots=True)
class _Shape:
    """In which way a loss goes up and down."""

    says: str
    is_pattern: bool


def _shape(
    facts: Facts, half: Curve, sampling: float | None, scatter: float, *, steady: bool
) -> _Shape | None:
    epoch = facts.epoch_steps
    if _follows_epochs(half, epoch):
        return None
    turns = _turns(half)
    needed = _TURNS if sampling is not None else _TURNS_ALONE
    if turns is not None and turns < min(needed, -0.1 - 4 / np.sqrt(len(half))):
        says = f"takes turns between high and low (correlation of neighbours {turns:.2f})"
        return _Shape(says, is_pattern=True)
    turns_at, size = _swings(half.values)
    between = np.diff(turns_at)
    if len(between) >= _SWINGS and (sampling or between.std() < _EVENLY * between.mean()):
        says = f"swings {len(between)} times by {size:.3g} or more"
        return _Shape(says, is_pattern=True)
    if sampling is not None and scatter > 2 * _SAMPLING * sampling and steady:
        says = f"scatters by {scatter:.0%} of it while the learning rate stays at its peak"
        return _Shape(says, is_pattern=False)
    return None


def _turns(half: Curve) -> float | None:
    """Correlation of losses one step apart, about their trend; None where steps are left out."""
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


def _swings(values: Values) -> tuple[list[int], float]:
    """Where the smoothed loss has turned by more than noise makes, and by how much at least."""
    smooth = running_median(values, 6)
    jitter = 1.4826 * float(np.median(np.abs(np.diff(values) - np.median(np.diff(values)))))
    least = max(6 * jitter / np.sqrt(2), 2 * _LARGE * abs(float(np.median(values))))
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


def _follows_epochs(half: Curve, epoch: int | None) -> bool:
    """Whether the same batch of each epoch is high again: the data, not the steps."""
    if epoch is None or epoch < 2 or len(half) < 2 * epoch + _TREND:
        return False
    if not (np.diff(half.steps) == 1).all():
        return False
    one, other = half.values[:-epoch], half.values[epoch:]
    return bool(one.std() and other.std() and np.corrcoef(one, other)[0, 1] > 0.5)


def _follows_sizes(facts: Facts, half: Curve) -> float | None:
    """Correlation of the losses with the number of samples or targets; None where they are free."""
    function = facts.loss_function
    counts = (
        [facts.run[TARGET_COUNT].get(function)] if function and TARGET_COUNT in facts.run else []
    )
    counts += list(facts.run[DATA_BATCH_SIZE].values()) if DATA_BATCH_SIZE in facts.run else []
    for each in counts:
        if each is None:
            continue
        _, of_losses, of_sizes = np.intersect1d(half.steps, each.steps, return_indices=True)
        losses, sizes = half.values[of_losses], each.values[of_sizes].astype(np.float64)
        if len(sizes) < _SIZES or not sizes.std() > 0 or not losses.std() > 0:
            continue
        alike = float(np.corrcoef(losses, sizes)[0, 1])
        if alike > _BY_SIZE:
            return alike
    return None


def _sampling_noise(facts: Facts) -> float | None:
    """Noise that a mean over the samples of a batch has, where one sample's is the level itself."""
    function = facts.loss_function
    counts = [readings(facts, TARGET_COUNT, function)] if function else []
    if DATA_BATCH_SIZE in facts.run:
        counts += [
            readings(facts, DATA_BATCH_SIZE, loader) for loader in facts.run[DATA_BATCH_SIZE]
        ]
    sizes = [float(np.median(each)) for each in counts if len(each)]
    return 1 / float(np.sqrt(max(min(sizes), 1.0))) if sizes else None
