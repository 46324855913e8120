"""The loss jumped and did not return to its level."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.curve import Curve, rates, warmed_up
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.facts.stages import stages
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.signal_words import in_words
from holter.record import Series
from holter.record.band import WINDOW, Band, ceilings
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    ADAM_SURPRISE,
    GRAD_TOTAL_NORM,
    INPUT_MEAN,
    INPUT_STD,
    LOSS,
    MODEL_ELEMENTS,
    TARGET_BATCH_ENTROPY,
    TARGET_STD,
    UPDATE_RATIO,
    Signal,
)

Mask = npt.NDArray[np.bool_]

_SKIP = 50  # losses after a spike that belong to it
_AFTER = 200  # losses after it whose median is its new level
_BEFORE = 100  # losses before it: fewer, because a falling loss was higher long before
_NEAR, _FAR = 400, 4000  # steps before a spike that tell the level of a signal; far if sampled
_LEAD = 12  # steps before a spike in which another signal may have moved first
_SIZE = 0.1  # change of the size of outputs, as a share, that makes another task
_TARGETS = 1.25  # tolerance of the comparison with the variance of targets, which is estimated
_MEDIAN_ERROR = 1.25  # standard error of a median, in standard deviations over root n


@dataclass(frozen=True, slots=True)
class Spike:
    """A spike, and the level of the loss before and after it."""

    step: int
    end: int
    peak: float
    before: float
    after: float | None  # None where too few losses follow
    error: float  # standard error of their difference
    smallest_rise: float  # that matters

    def lasts(self, standard_errors: float) -> bool:
        """Whether the loss stayed above its old level."""
        return self.after is not None and self.after - self.before > max(
            standard_errors * self.error, self.smallest_rise
        )


@exception
def rate_raised(facts: Facts, curve: Curve, spike: Spike, _: float) -> str | None:
    """A schedule raised the learning rate, and the loss rises with it."""
    around = (curve.steps >= spike.step - _BEFORE) & (curve.steps <= spike.end + _AFTER)
    rate = rates(facts, curve.steps[around])
    if not rate[0] > 0 or rate.max() <= 1.2 * rate[0]:
        return None
    return (
        f"the loss rose to {spike.peak:.3g} at step {spike.step}, where the learning rate rose"
        f" from {rate[0]:.2g} to {rate.max():.2g}"
    )


@exception
def new_data(facts: Facts, _: Curve, spike: Spike, spreads: float) -> str | None:
    """The inputs, labels or lengths changed permanently at the same step, so the task changed."""
    for signal in (INPUT_MEAN, INPUT_STD, TARGET_BATCH_ENTROPY, MODEL_ELEMENTS):
        is_size = signal is MODEL_ELEMENTS
        if (
            _size_changed(facts, spike)
            if is_size
            else _level_changed(facts, signal, spike, spreads)
        ):
            return (
                f"the loss rose from {spike.before:.3g} to {spike.after:.3g} at step {spike.step},"
                f" where the {in_words(signal)} changed as well"
            )
    return None


@exception
def growing_targets(facts: Facts, _: Curve, spike: Spike, __: float) -> str | None:
    """The variance of the targets grew as much as the loss, so the relative error did not rise."""
    if spike.after is None or spike.before <= 0 or TARGET_STD not in facts.run:
        return None
    for series in facts.run[TARGET_STD].values():
        steps = series.steps
        before = _variance(series, (steps >= spike.step - _BEFORE) & (steps <= spike.step))
        after = _variance(series, (steps >= spike.end) & (steps <= spike.end + _AFTER))
        before = before or _variance(series, steps <= spike.step)  # where readings are rare
        after = after or _variance(series, steps >= spike.end)
        if before and after and spike.after / spike.before <= _TARGETS * after / before:
            return (
                f"the loss rose from {spike.before:.3g} to {spike.after:.3g} at step {spike.step},"
                f" while the variance of the targets grew {after / before:.2g} times"
            )
    return None


def _variance(series: Series, chosen: np.ndarray) -> float | None:
    """The variance of the targets of some readings, from that of all targets so far."""
    inside = np.flatnonzero(chosen)
    if len(inside) < 2:
        return None
    begin, end = inside[0], inside[-1]
    batches = np.arange(len(series)) + 1.0  # that were read
    sums = batches * series.values.astype(np.float64) ** 2  # of squares, if batches are equal
    return float((sums[end] - sums[begin]) / (batches[end] - batches[begin]))


@rule(
    severity=Severity.WARNING,
    level=Level.NUMERICS,
    needs=(LOSS,),
    symptom=True,
    preview=True,
    exceptions=(rate_raised, new_data, growing_targets),
)
def loss_spike(
    facts: Facts,
    *,
    min_steps: Annotated[int, "losses needed after warm-up"] = 100,
    min_after: Annotated[int, "losses needed after a spike to judge it"] = 40,
    spreads: Annotated[float, "height of two losses in robust standard deviations"] = 7.0,
    standard_errors: Annotated[float, "by which the level after a spike must be higher"] = 6.0,
    company: Annotated[float, "robust standard deviations by which another signal moves"] = 5.5,
) -> Iterator[Verdict]:
    """The loss jumped and did not return to its level.

    ## What it does
    Compares each loss after warm-up with the median of the 64 before it in the same stage; a spike
    is a loss far above that, twice within three readings. A spike counts if the median loss after
    it stays above the median before it. Gradient norm, updates and Adam's second moment show which
    moved first.

    ## Why it matters
    The model lost something it had learned and continues from a worse state. Spikes that do not
    recover tend to recur, each from a higher level.

    ## Example
    ```python
    loss.backward(); optimizer.step()                                             # bad
    loss.backward(); clip_grad_norm_(model.parameters(), 1.0); optimizer.step()   # good
    ```

    ## What to do
    Restart from a checkpoint well before the spike and skip a few hundred batches, or lower the
    learning rate. If an update or Adam's second moment moved first, use a lower `beta2` or a longer
    warm-up; if gradients moved first, clip them. The batch before the spike is rarely the cause.

    ## When it is wrong
    A harder stage of training (new data, a second task) raises the loss. A new stage is recognised
    if the inputs or labels change, or if it has its own optimizer or loss function.

    ## How to confirm
    - Train on the same batches from an older checkpoint: if there is no spike, the state of weights
      and optimizer was the cause, not the data.
    - Compare the validation loss before and after the spike.
    """
    curve = facts.signed_curve
    if isinstance(curve, str):
        yield loss_spike.not_examined(curve)
        return
    curve = curve.since(warmed_up(facts, curve) or 0)
    judged = [stage for stage in stages(facts, curve) if len(stage) >= min_steps]
    if not judged:
        yield loss_spike.not_examined(
            f"{len(curve)} of the {min_steps} losses needed after warm-up"
            if len(curve) < min_steps
            else f"no stage of the training has the {min_steps} losses needed"
        )
        return
    outside = [_outside(stage, spreads) for stage in judged]
    for stage, (above, pairs) in zip(judged, outside, strict=True):
        yield from _hard_batches(stage, above & ~pairs)
    spikes = [
        (stage, _measure(stage, first, last, min_after))
        for stage, (_, pairs) in zip(judged, outside, strict=True)
        for first, last in _groups(pairs)
    ]
    if not spikes:
        yield loss_spike.clear(f"no spike in {sum(map(len, judged))} losses")
        return
    excuses = 0
    for stage, spike in spikes:
        if spike.lasts(standard_errors):
            excuse = loss_spike.excused(facts, stage, spike, company)
            if excuse is None:
                yield _finding(facts, stage, spike, len(spikes), company)
                return
            excuses += 1
            yield excuse
    if excuses == 0:
        yield from _recovered(curve, [spike for _, spike in spikes])


def _outside(curve: Curve, spreads: float) -> tuple[Mask, Mask]:
    """Which losses are above the band of those before them, and which of these not alone."""
    outside = np.zeros(len(curve), bool)
    outside[WINDOW:] = curve.values[WINDOW:] > ceilings(curve.values, spreads=spreads)
    pairs = np.zeros_like(outside)  # those with another one within two readings
    for shift in (1, 2):
        both = outside[:-shift] & outside[shift:]
        pairs[:-shift] |= both
        pairs[shift:] |= both
    return outside, pairs


def _groups(pairs: Mask) -> Iterator[tuple[int, int]]:
    """First and last index of each spike."""
    places = np.flatnonzero(pairs)
    if len(places):
        for group in np.split(places, np.flatnonzero(np.diff(places) > _SKIP) + 1):
            yield int(group[0]), int(group[-1])


def _measure(curve: Curve, first: int, last: int, min_after: int) -> Spike:
    values = curve.values
    remaining = len(values) - first
    begin = first + min(
        _SKIP, remaining // 3
    )  # not from `last` on: a new level is outside for long
    earlier, later = values[max(first - _BEFORE, 0) : first], values[begin : begin + _AFTER]
    at_end = float(np.median(values[begin:][-_AFTER:]))  # it may have recovered later
    bands = Band.of(earlier), Band.of(later)
    counts = len(earlier), len(later)
    errors = [band.spread / np.sqrt(count) for band, count in zip(bands, counts, strict=True)]
    before = bands[0].median
    learned = abs(float(np.median(values[:10])) - before)
    return Spike(
        step=int(curve.steps[first]),
        end=int(curve.steps[last]),
        peak=float(values[first : last + 1].max()),
        before=before,
        after=min(bands[1].median, at_end) if remaining >= min_after else None,
        error=_MEDIAN_ERROR * float(np.hypot(*errors)),
        smallest_rise=max(0.005 * abs(before), 0.002 * learned),
    )


def _hard_batches(curve: Curve, alone: Mask) -> Iterator[Verdict]:
    """A note on single losses above the band, if they are few."""
    places = np.flatnonzero(alone)
    if not 0 < len(places) <= max(1, len(curve) // 100):
        return
    worst = int(places[curve.values[places].argmax()])
    before = float(np.median(curve.values[max(worst - WINDOW, 0) : worst]))
    yield loss_spike.normal(
        f"{len(places)} of {len(curve)} losses are isolated spikes, the largest"
        f" {curve.values[worst]:.3g} (median before: {before:.3g}) at step {curve.steps[worst]}:"
        " hard batches; the next loss was back to normal",
        (Evidence(LOSS, (int(curve.steps[places[0]]), int(curve.steps[places[-1]])), "", ""),),
    )


def _recovered(curve: Curve, spikes: list[Spike]) -> Iterator[Verdict]:
    largest = max(spikes, key=lambda spike: spike.peak - spike.before)
    recovered = sum(spike.after is not None for spike in spikes)
    says = f"the loss recovered from {recovered} of {len(spikes)} spikes"
    if recovered < len(spikes):
        says += "; the others are too close to the end to judge"
    yield loss_spike.normal(
        f"{says}; the largest rose to {largest.peak:.3g} at step {largest.step}",
        (
            Evidence(
                LOSS,
                (largest.step, largest.end),
                f"median before: {largest.before:.3g}",
                curve.owner,
            ),
        ),
    )
    yield loss_spike.clear(says)


def _finding(facts: Facts, curve: Curve, spike: Spike, count: int, company: float) -> Verdict:
    assert spike.after is not None
    movers = [
        (signal, *moved)
        for signal in (GRAD_TOTAL_NORM, UPDATE_RATIO, ADAM_SURPRISE)
        if (moved := _first_move(facts, signal, spike, company)) is not None
    ]
    movers.sort(key=lambda mover: (mover[1], mover[0].phase))
    first_mover = ""
    if movers:
        signal, step, times = movers[0]
        first_mover = (
            f"; the {in_words(signal)} reached {times:.2g} times its median at step {step}"
        )
    return loss_spike.finding(
        f"the loss jumped from {spike.before:.3g} to {spike.peak:.3g} at step {spike.step} and"
        f" settled at {spike.after:.3g}" + first_mover,
        confidence=Confidence.LIKELY if movers else Confidence.HINT,
        onset=min(spike.step, movers[0][1]) if movers else spike.step,
        evidence=(
            Evidence(
                LOSS,
                (max(spike.step - _AFTER, 0), min(spike.end + _AFTER, curve.span[1])),
                f"median {spike.before:.3g} before, {spike.after:.3g} after (standard error"
                f" {spike.error:.1g}); one of {count} spikes",
                curve.owner,
            ),
            *(
                Evidence(
                    signal,
                    (max(step - _LEAD, 0), spike.end),
                    f"{times:.2g} times its median at step {step}",
                )
                for signal, step, times in movers
            ),
        ),
        fix=f"restart from a checkpoint before step {spike.step}, and skip a few hundred batches or"
        " lower the learning rate",
    )


def _first_move(
    facts: Facts, signal: Signal, spike: Spike, spreads: float
) -> tuple[int, float] | None:
    """The first step around a spike at which a signal was far above its median, and how far."""
    series = _around(facts, signal, spike)
    if series is None:
        return None
    around = (series.steps >= spike.step - _LEAD) & (series.steps <= spike.end)
    band = _band_before(series, spike)
    if band is None or not around.any():
        return None
    values = series.values[around]
    outside = np.flatnonzero(values - band.median > spreads * max(band.spread, 0.015))
    if not len(outside):
        return None
    first = int(outside[0])
    return int(series.steps[around][first]), float(np.exp(values[first] - band.median))


def _size_changed(facts: Facts, spike: Spike) -> bool:
    """Whether the model returns more or less after a spike: longer sequences, more calls."""
    sizes = facts.run[MODEL_ELEMENTS].get("") if MODEL_ELEMENTS in facts.run else None
    if sizes is None:
        return False
    steps = sizes.steps
    before = sizes.values[(steps >= spike.step - _BEFORE) & (steps < spike.step)]
    after = sizes.values[(steps >= spike.end) & (steps <= spike.end + _AFTER)]
    if not len(before) or not len(after):
        return False
    return abs(float(np.median(after) / np.median(before)) - 1) > _SIZE


def _level_changed(facts: Facts, signal: Signal, spike: Spike, spreads: float) -> bool:
    """Whether the median of a signal after a spike is far from that before it."""
    for reach in (_NEAR, _FAR):
        # The mean of centred inputs is near zero, where a logarithm jumps about.
        series = _around(facts, signal, spike, reach, in_logs=signal is not INPUT_MEAN)
        band = None if series is None else _band_before(series, spike)
        if band is not None:
            break
    if series is None or band is None:
        return False
    after = series.values[series.steps > spike.step]
    if not len(after) or not (series.steps >= spike.step - _LEAD).any():
        return False
    floor = 0.015 * (abs(band.median) if signal is INPUT_MEAN else 1)
    return abs(float(np.median(after)) - band.median) > spreads * max(band.spread, floor)


def _band_before(series: Series, spike: Spike) -> Band | None:
    before: Values = series.values[series.steps < spike.step - _LEAD].astype(np.float64)
    return Band.of(before) if len(before) >= 8 else None


def _around(
    facts: Facts, signal: Signal, spike: Spike, reach: int = _NEAR, *, in_logs: bool = True
) -> Series | None:
    """The median of a signal over its owners at each step around a spike, or of its logarithm."""
    if signal not in facts.run:
        return None
    rows = facts.run[signal].rows(max(spike.step - reach, 0), spike.end + reach // 2)
    kept = rows.present & np.isfinite(rows.values) & (rows.values != 0)
    full = kept.any(axis=1)
    if not full.any():
        return None
    values = np.where(kept, rows.values, np.nan)
    if in_logs:
        np.log(np.abs(rows.values), out=values, where=kept)
    return Series(rows.steps[full], np.nanmedian(values[full], axis=1).astype(np.float32))
