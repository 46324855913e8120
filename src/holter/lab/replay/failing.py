"""Where a captured failure begins: the failing step, the steps before it that lead there."""

import math
import statistics
from collections.abc import Sequence

from holter.diagnosis.facts.replays import NO_BAND
from holter.lab.replay.outcomes import ReplayTrial, StepOutcome
from holter.lab.replay.window import FailureWindow
from holter.record import Run
from holter.record.band import Band
from holter.record.signals import LOSS

BEYOND = 8  # steps after the failing one that are judged, as far as they were captured
_FEWEST = 6  # steps that make a band
_BEGINNING = 32  # losses of the beginning of a training
_STEEP = 10  # times the median gradient norm, from which on a gradient is out of its band
_CALM = 0.02  # of the median: the spread of the calmest curve
_HIGH = 8.0  # spreads above the median loss, from which on a loss is out of its band


def locate(window: FailureWindow, unchanged: ReplayTrial) -> Band:
    """Set the window's failing step, onset and bad steps; return the band of losses before."""
    if unchanged.first_bad is not None:
        window.failing = unchanged.first_bad
    elif window.failing not in unchanged.steps:  # of another phase: the first phase meets it next
        later = [step for step in unchanged.steps if step > window.failing]
        window.failing = min(later, default=window.failing)
    alike = unchanged.like(window.failing)
    window.onset = onset(alike, window.failing)
    band = band_before(alike, window.failing, window.onset)
    window.bad = _bad_steps(window, band)
    return band


def is_failure(outcome: StepOutcome, band: Band) -> bool:
    """Whether something of a step is not finite, or its loss above the band."""
    return not outcome.is_finite or outcome.loss > band.ceiling()


def rises(unchanged: ReplayTrial, failing: int, band: Band) -> bool:
    """Whether the loss leaves its band in the replay, as it did in the training."""
    alike = unchanged.like(failing)
    rows = zip(alike.steps, alike.losses, strict=True)
    after = [loss for step, loss in rows if step >= failing]
    return bool(after) and max(after) > band.ceiling()


def fatal_before(window: FailureWindow, unchanged: ReplayTrial) -> str:
    """Say by what it is known that the fatal update lies before the window, or return ""."""
    first = window.steps[0]
    if not first.step:
        return ""
    state = window.capture.state.items()
    spoiled = [name for name, each in state if not bool(each.isfinite().all())]
    if spoiled:
        name = spoiled[0].split("/", 2)[2]
        return (
            f"the fatal update lies before the window: {name} is not finite at its first step,"
            f" {first.step}"
        )
    earlier = window.recorded_before(first)
    others = [step for step in window.like(first) if step is not first][:2]
    if len(earlier) < _FEWEST or not others or unchanged.first_bad is None:
        return ""
    band = Band.of(earlier)
    for step in (first, *others):
        window.restore()
        if not is_failure(window.one(step), band):
            return ""
    return (
        "the fatal update lies before the window: every batch fails on the weights that its first"
        f" step, {first.step}, begins with"
    )


def onset(unchanged: ReplayTrial, failing: int) -> int:
    """Return the first of the steps up to the failing one whose loss or norm is out of its band."""
    rows = list(zip(unchanged.steps, unchanged.losses, unchanged.norms, strict=True))
    early = [row for row in rows if row[0] < failing][: max(len(rows) // 2, _FEWEST)]
    if len(early) < _FEWEST:
        return failing
    high = _high([loss for _, loss, _ in early])
    steep = _STEEP * statistics.median(norm for _, _, norm in early)
    began = failing
    for step, loss, norm in reversed([row for row in rows if row[0] < failing]):
        if loss <= high and norm <= steep:
            break
        began = step
    return began


def _before(unchanged: ReplayTrial, failing: int, began: int) -> list[float]:
    """Return the losses before a failure that began with a step."""
    rows = [
        (step, loss)
        for step, loss in zip(unchanged.steps, unchanged.losses, strict=True)
        if step < failing and math.isfinite(loss)
    ]
    return [loss for place, (step, loss) in enumerate(rows) if step < began or place < _FEWEST]


def peak_before(unchanged: ReplayTrial, failing: int, began: int) -> float | None:
    """Return the highest loss shortly before a failure that began with a step, or None.

    Where nothing led to the failure, the loss of its own step counts: if that is finite, it was
    computed before anything was wrong.
    """
    before = _before(unchanged, failing, began)
    late = before[len(before) // 2 :]
    if began == failing:
        rows = zip(unchanged.steps, unchanged.losses, strict=True)
        late += [loss for step, loss in rows if step == failing and math.isfinite(loss)]
    return max(late, default=None)


def band_before(unchanged: ReplayTrial, failing: int, began: int) -> Band:
    """Return the band of the losses before a failure that began with a step."""
    before = _before(unchanged, failing, began)
    return _calm_band(before) if before else NO_BAND


def band_of_spike(
    unchanged: ReplayTrial, failing: int, band: Band, earlier: Sequence[float]
) -> Band:
    """Return the band that a loss has left: of the window, or of the `earlier` losses before it.

    A loss that rises slowly stays in the band of a window in which it has been rising already.
    """
    if rises(unchanged, failing, band) or len(earlier) < _FEWEST:
        return band
    before = _calm_band(earlier)
    return before if rises(unchanged, failing, before) else band


def band_of_beginning(run: Run | None, step: int) -> Band | None:
    """Return the band of the first losses of the phase that makes a step.

    A loss that grows slowly leaves no other.
    """
    for series in run[LOSS].values() if run is not None and LOSS in run else ():
        if step in series.steps:
            first = series.values[:_BEGINNING]
            return _calm_band([float(loss) for loss in first if math.isfinite(loss)])
    return None


def _calm_band(losses: Sequence[float]) -> Band:
    band = Band.of(losses)
    return Band(band.median, max(band.spread, _CALM * abs(band.median), 1e-6))


def _bad_steps(window: FailureWindow, band: Band) -> frozenset[int]:
    """Return the onset, and the steps after it whose batch fails on the oldest weights, too."""
    bad = {window.onset}
    for step in window.like(window.at(window.failing)):
        if window.onset < step.step <= window.failing + BEYOND:
            window.restore()
            if is_failure(window.one(step), band):
                bad.add(step.step)
    return frozenset(bad)


def _high(losses: Sequence[float]) -> float:
    finite = [loss for loss in losses if math.isfinite(loss)]
    if not finite:
        return math.inf
    band = Band.of(finite)
    return band.median + max(_HIGH * band.spread, 0.5 * abs(band.median))
