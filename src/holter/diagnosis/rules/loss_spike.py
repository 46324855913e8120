"""The loss jumped up and did not come back to where it was."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.curve import Curve, rates, running_median, warmed_up
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.rule import rule
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    ADAM_SURPRISE,
    GRAD_TOTAL_NORM,
    INPUT_MEAN,
    INPUT_STD,
    LOSS,
    TARGET_BATCH_ENTROPY,
    TARGET_STD,
    UPDATE_RATIO,
    Signal,
)

Mask = npt.NDArray[np.bool_]

_WINDOW = 64  # losses before one that say what is usual
_MADS = 10.0  # median absolute deviations over the median of these
_SHARE = 0.02  # of the loss: less is no spike however calm the curve
_SKIP = 50  # losses after a spike that are left to it
_LEVEL = 200  # losses after it whose median is compared
_BEFORE = 100  # with that of so many before: fewer, as a falling loss was higher long before
_SURE = 6.0  # standard errors
_LEAD = 12  # steps before a spike in which others may have moved first
_COMPANY = 8.0  # median absolute deviations, of logarithms, that say that another signal moved
_GROWING, _GROWN = 0.01, 0.1  # of the logarithm of a spread: in parts, and over all
_MEDIAN_ERROR = 1.25 * 1.4826  # standard error of a median, in median absolute deviations


@rule(
    severity=Severity.WARNING,
    level=Level.NUMERICS,
    needs=(LOSS,),
    symptom=True,
)
def loss_spike(facts: Facts, *, min_steps: int = 100, min_after: int = 40) -> Iterator[Verdict]:
    """The loss jumped up and did not come back to where it was.

    ## What it does
    Compares each of at least `min_steps` losses, after warm-up, with the median of the 64 before
    it. A spike is a loss more than ten median absolute deviations and 2 % above that, twice within
    three readings: a single hard batch is none. Medians make it blind to earlier spikes, which
    therefore hide no later one. A spike has recovered if the median of up to 200 losses after it,
    some left out first, or of the last 200, is not above that of the 100 before by six standard
    errors; it takes `min_after` losses to tell. Recovered spikes are noted as normal. One that has
    not is a finding, likely if gradients, updates or Adam's surprise moved around it too; the first
    of them is named. Spikes at a rise of the learning rate, or at a change of inputs or labels, are
    left out.

    ## Why it matters
    The model lost something it had learned and trains on from a worse place. Spikes that do not
    recover tend to come back, each from higher up.

    ## What to do
    Go back to a checkpoint well before the onset and skip some hundred batches, or lower the
    learning rate. Where an update or Adam's surprise moved first, a lower second beta or a warm-up
    helps; where gradients moved first, clip them. The batch before the spike is mostly not guilty.

    ## When it is wrong
    A new stage of data or a second task that is harder lifts the loss for good; so does a resume
    that begins an epoch anew. Those that show in the inputs or labels are told apart, others are
    not.

    ## How to confirm
    - Train the same batches from an older checkpoint: if they do not spike, it was the state of
      weights and optimizer and not the data.
    - Compare the validation loss before and after: if it rose as well, something was lost.
    """
    curve = facts.signed_curve
    if isinstance(curve, str):
        yield loss_spike.not_examined(curve)
        return
    warm = warmed_up(facts, curve) or 0
    if len(curve) - warm < min_steps:
        yield loss_spike.not_examined(
            f"{len(curve) - warm} of the {min_steps} losses needed after warm-up"
        )
        return
    curve = curve.since(warm)
    spikes = [_measure(curve, *each, min_after) for each in _spikes(curve)]
    spikes = [each for each in spikes if not _rate_rose(facts, curve, each)]
    lasting = [each for each in spikes if each.lasts]
    yield from _hard_batches(curve)
    if not spikes:
        yield loss_spike.clear(f"none of {len(curve)} losses stands out twice in a row")
    if lasting:
        yield _finding(facts, curve, lasting[0], len(spikes))
    elif spikes:
        largest = max(spikes, key=lambda each: each.peak - each.before)
        untold = sum(each.after is None for each in spikes)
        late = f"; {untold} too near the end to tell" if untold else ""
        yield loss_spike.normal(
            f"{len(spikes)} spikes of the loss, the largest to {largest.peak:.4g} at step"
            f" {largest.step}, came back to their level{late}",
            (
                Evidence(
                    LOSS, (largest.step, largest.end), f"{largest.before:.4g} before", curve.owner
                ),
            ),
        )
        yield loss_spike.clear(f"each of {len(spikes)} spikes came back{late}")


@dataclass(frozen=True, slots=True)
class _Spike:
    """A spike, and the levels before and after it."""

    step: int
    end: int
    peak: float
    before: float
    after: float | None  # None where too few losses follow
    error: float  # standard error of the difference of both
    least: float  # the smallest rise that matters

    @property
    def lasts(self) -> bool:
        """Whether the loss stayed above its old level."""
        return self.after is not None and self.after - self.before > max(
            _SURE * self.error, self.least
        )


def _spikes(curve: Curve) -> Iterator[tuple[int, int]]:
    """First and last index of each group of losses that stand out."""
    _, pairs = _standing_out(curve)
    at = np.flatnonzero(pairs) + _WINDOW
    if not len(at):
        return
    breaks = np.flatnonzero(np.diff(at) > _SKIP)
    for group in np.split(at, breaks + 1):
        yield int(group[0]), int(group[-1])


def _standing_out(curve: Curve) -> tuple[Mask, Mask]:
    """Which losses from _WINDOW on stand out, and which of them not alone."""
    values = curve.values
    median = running_median(values, _WINDOW)[:-1]  # of those before each loss from _WINDOW on
    deviation = _deviations(values, median)
    height = values[_WINDOW:] - median
    out = height > np.maximum(_MADS * deviation, _SHARE * np.abs(median))
    pairs = np.zeros_like(out)  # those with another one among the two before or after
    for shift in (1, 2):
        both = out[:-shift] & out[shift:]
        pairs[:-shift] |= both
        pairs[shift:] |= both
    return out, pairs


def _hard_batches(curve: Curve) -> Iterator[Verdict]:
    """A note on losses that stand out alone, if they are few."""
    out, pairs = _standing_out(curve)
    at = np.flatnonzero(out & ~pairs) + _WINDOW
    if not 0 < len(at) <= max(1, len(curve) // 100):
        return
    worst = int(at[curve.values[at].argmax()])
    before = float(np.median(curve.values[max(worst - _WINDOW, 0) : worst]))
    yield loss_spike.normal(
        f"{len(at)} of {len(curve)} losses stand out alone, the largest with"
        f" {curve.values[worst]:.4g} ({before:.4g} before) at step {curve.steps[worst]}: hard"
        " batches; the next loss was as ever",
        (
            Evidence(
                LOSS, (int(curve.steps[at[0]]), int(curve.steps[at[-1]])), "alone", curve.owner
            ),
        ),
    )


def _deviations(values: Values, medians: Values) -> Values:
    """The median absolute deviation of the losses before each one."""
    windows = np.lib.stride_tricks.sliding_window_view(values, _WINDOW)[:-1]
    parts = [
        np.median(np.abs(windows[at : at + 8192] - medians[at : at + 8192, None]), axis=1)
        for at in range(0, len(windows), 8192)
    ]
    return np.concatenate(parts) if parts else np.empty(0)


def _measure(curve: Curve, first: int, last: int, min_after: int) -> _Spike:
    values = curve.values
    left = len(values) - first
    begin = first + min(_SKIP, left // 3)  # not from `last` on: a new level stands out for long
    earlier, later = values[max(first - _BEFORE, 0) : first], values[begin : begin + _LEVEL]
    before, after = float(np.median(earlier)), float(np.median(later))
    at_end = float(np.median(values[begin:][-_LEVEL:]))  # it may have come back later
    error = _MEDIAN_ERROR * float(
        np.hypot(*(_mad(part) / np.sqrt(max(len(part), 1)) for part in (earlier, later)))
    )
    gained = abs(float(np.median(values[:10])) - before)
    return _Spike(
        step=int(curve.steps[first]),
        end=int(curve.steps[last]),
        peak=float(values[first : last + 1].max()),
        before=before,
        after=min(after, at_end) if left >= min_after else None,
        error=error,
        least=max(0.005 * abs(before), 0.002 * gained),
    )


def _mad(values: Values) -> float:
    return float(np.median(np.abs(values - np.median(values)))) if len(values) else 0.0


def _rate_rose(facts: Facts, curve: Curve, spike: _Spike) -> bool:
    """Whether a schedule raised the learning rate before the spike or after it."""
    around = (curve.steps >= spike.step - _BEFORE) & (curve.steps <= spike.end + _LEVEL)
    rate = rates(facts, curve.steps[around])
    return bool(rate[0] > 0 and rate.max() > 1.2 * rate[0])


def _finding(facts: Facts, curve: Curve, spike: _Spike, count: int) -> Verdict:
    assert spike.after is not None
    changed = [
        signal
        for signal in (INPUT_MEAN, INPUT_STD, TARGET_BATCH_ENTROPY)
        if _moved(facts, signal, spike, stays=True) is not None
    ]
    if changed:
        return loss_spike.normal(
            f"the loss rose from {spike.before:.4g} to {spike.after:.4g} at step {spike.step},"
            f" where {changed[0]} changed as well: other data"
        )
    if _targets_grow(facts, spike):
        return loss_spike.normal(
            f"the loss rose from {spike.before:.4g} to {spike.after:.4g} at step {spike.step},"
            " while targets grow all along: they are made by what is learned, or other data come"
        )
    movers = [
        (signal, *moved)
        for signal in (GRAD_TOTAL_NORM, UPDATE_RATIO, ADAM_SURPRISE)
        if (moved := _moved(facts, signal, spike)) is not None
    ]
    movers.sort(key=lambda each: (each[1], each[0].phase))
    rise = spike.after - spike.before
    sure = f"{rise / spike.error:.0f} standard errors" if spike.error else "without noise"
    first_mover = ""
    if movers:
        signal, step, times = movers[0]
        first_mover = f"; {signal} was {times:.2g} times the usual at step {step}"
    return loss_spike.finding(
        f"the loss jumped from {spike.before:.4g} to {spike.peak:.4g} at step {spike.step} and"
        f" settled at {spike.after:.4g} ({rise:+.2g}, {sure})" + first_mover,
        confidence=Confidence.LIKELY if movers else Confidence.HINT,
        onset=min(spike.step, movers[0][1]) if movers else spike.step,
        evidence=(
            Evidence(
                LOSS,
                (max(spike.step - _LEVEL, 0), min(spike.end + _LEVEL, curve.span[1])),
                f"median {spike.before:.4g} before, {spike.after:.4g} after; one of {count} spikes",
                curve.owner,
            ),
            *(
                Evidence(
                    signal,
                    (max(step - _LEAD, 0), spike.end),
                    f"{times:.2g} times the usual at step {step}",
                )
                for signal, step, times in movers
            ),
        ),
        fix=f"go back to a checkpoint before step {spike.step}, skip some hundred batches or lower"
        " the learning rate",
    )


def _targets_grow(facts: Facts, spike: _Spike) -> bool:
    """Whether the spread of all targets so far rises before a spike and after it, not with it."""
    spread = _typical(facts, TARGET_STD, spike)
    if spread is None:
        return False
    before = spread.values[spread.steps < spike.step]
    after = spread.values[spread.steps > spike.end]
    if len(before) < 8 or len(after) < 8:
        return False
    quarter = before[-max(len(before) // 4, 1) :]
    return bool(
        quarter[-1] - quarter[0] > _GROWING
        and after[-1] - after[0] > _GROWING
        and after[-1] - before[-1] > _GROWN
    )


def _moved(
    facts: Facts, signal: Signal, spike: _Spike, *, stays: bool = False
) -> tuple[int, float] | None:
    """The first step around a spike at which a signal left what it usually was, and how far.

    With `stays`, only if its level afterwards is another one.
    """
    series = _typical(facts, signal, spike)
    if series is None:
        return None
    before = series.values[series.steps < spike.step - _LEAD]
    around = (series.steps >= spike.step - _LEAD) & (series.steps <= spike.end)
    if len(before) < 8 or not around.any():
        return None
    usual = float(np.median(before))
    width = max(_mad(before.astype(np.float64)), 0.01)
    values = series.values[around]
    if stays:
        after = series.values[series.steps > spike.step]
        moved = len(after) > 0 and abs(float(np.median(after)) - usual) > _COMPANY * width
        return (spike.step, float(np.exp(np.median(after) - usual))) if moved else None
    out = np.flatnonzero(values - usual > _COMPANY * width)
    if not len(out):
        return None
    first = int(out[0])
    return int(series.steps[around][first]), float(np.exp(values[first] - usual))


def _typical(facts: Facts, signal: Signal, spike: _Spike) -> Series | None:
    """The logarithm of a signal around a spike: the median over its owners at each step."""
    if signal not in facts.run:
        return None
    rows = facts.run[signal].rows(max(spike.step - 2 * _LEVEL, 0), spike.end + _LEVEL)
    kept = rows.present & np.isfinite(rows.values) & (rows.values != 0)
    full = kept.any(axis=1)
    if not full.any():
        return None
    logs = np.full(rows.values.shape, np.nan)
    np.log(np.abs(rows.values), out=logs, where=kept)
    return Series(rows.steps[full], np.nanmedian(logs[full], axis=1).astype(np.float32))
