"""Clipping leaves so little of the gradients that training stands still."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.progress import (
    level,
    median_update,
    steps_follow_gradients,
)
from holter.diagnosis.rule import rule
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import CLIP_COEFFICIENT, CLIP_LIMIT, CLIP_NORM, LOSS, UPDATE_RATIO

_RECENT = 200  # readings that are judged
_OFTEN = 0.8  # share of clipped steps that is worth a note
_OUTLIER = 20  # times the usual norm
_SMALL_UPDATE = 1e-3  # relative change of a parameter per step, about that of a sound training


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(CLIP_COEFFICIENT, CLIP_NORM, CLIP_LIMIT),
)
def constant_clipping(
    facts: Facts, *, min_steps: int = 50, max_coefficient: float = 0.05, min_fall: float = 0.1
) -> Iterator[Verdict]:
    """Clipping leaves so little of the gradients that training stands still.

    ## What it does
    Looks at the last 200 clipped steps, at least `min_steps`. Clipping on nearly every step is a
    common recipe and only noted, with the learning rate that is left. It is a fault where three
    things come together: the optimizer's steps follow the size of the gradients (SGD, not Adam),
    the median factor is under `max_coefficient`, and the outcome is bad: updates are small and the
    loss has fallen by less than `min_fall`. A single norm far above the limit is noted, too.

    ## Why it matters
    With SGD a factor of 0.01 is a learning rate 100 times smaller than the one that was set.
    Training then looks like a model that cannot learn.

    ## What to do
    Raise the limit to about the 95th percentile of the norms before clipping, so that it cuts
    outliers and leaves ordinary steps alone. Or keep it and raise the learning rate by the same
    factor.

    ## When it is wrong
    Where the loss is flat for another reason, the small factor is innocent. Normalised gradients by
    design (a limit far under every norm, with a learning rate made for it) look alike while a
    training makes no progress.

    ## How to confirm
    - Set the limit to the median of the norms before clipping and repeat the first 100 steps: the
      loss should fall at once.
    - Repeat with the learning rate divided by the median factor.
    """
    series = facts.run[CLIP_COEFFICIENT].get("")
    kept = np.isfinite(series.values) if series is not None else np.empty(0, bool)
    if series is None or kept.sum() < min_steps:
        yield constant_clipping.not_examined(
            f"{int(kept.sum())} of the {min_steps} clipped steps needed"
        )
        return
    steps, factors = series.steps[kept][-_RECENT:], series.values[kept][-_RECENT:]
    window = int(steps[0]), int(steps[-1])
    clipped, typical = float((factors < 1).mean()), float(np.median(factors))
    norm, limit = (
        _median(facts.run[CLIP_NORM][""], window),
        _median(facts.run[CLIP_LIMIT][""], window),
    )
    left = (
        f"{clipped:.0%} of the last {len(factors)} steps are clipped, median factor"
        f" {typical:.2g} (norm {norm:.3g}, limit {limit:.3g})"
    )
    loss = facts.falling_loss
    fall = _fall(loss)
    update = median_update(facts, *window)
    follows = steps_follow_gradients(facts)
    small = update is None or update < _SMALL_UPDATE
    held = follows and small and typical < max_coefficient
    if loss is not None and fall is not None and held and fall < min_fall:
        yield constant_clipping.finding(
            f"{left}: SGD learns with {typical:.2g} of its learning rate, and the loss has"
            f" changed by {fall:.1%}",
            confidence=Confidence.LIKELY if update is not None else Confidence.HINT,
            onset=int(series.steps[kept][0]),
            evidence=(
                Evidence(CLIP_COEFFICIENT, window, f"median {typical:.2g}: 1 is unclipped"),
                Evidence(LOSS, (loss.first, loss.last), f"fell by {fall:.1%} in all"),
                *_updates(window, update),
            ),
            fix=f"raise the limit from {limit:.3g} to about {_percentile(facts, window):.3g}, the"
            " 95th percentile of the norms, or take the clipping out",
        )
        return
    if clipped > _OFTEN:
        yield constant_clipping.normal(f"{left}: {_effect(facts, typical, follows)}")
    yield from _outliers(facts, float(np.median(facts.run[CLIP_LIMIT][""].values)))
    why = "" if fall is None else f"; the loss fell by {fall:.0%}"
    moved = "" if update is None else f"; median update {update:.1g} of a weight"
    yield constant_clipping.clear(f"{left}{why}{moved}")


def _effect(facts: Facts, typical: float, follows: bool) -> str:
    if not follows:
        return "a recipe, not a fault; Adam and its like divide it out, their updates are as large"
    known = facts.rates
    if not known:
        return f"a recipe, not a fault; the effective learning rate is {typical:.2g} of the set one"
    rate = float(known[0].values[-1])
    return (
        "a recipe, not a fault; the effective learning rate is about"
        f" {rate * typical:.2g}, not {rate:.2g}"
    )


def _outliers(facts: Facts, limit: float) -> Iterator[Verdict]:
    """The note that a few norms far above the limit were cut, as clipping is meant to do."""
    series = facts.run[CLIP_NORM][""]
    norms = series.values[np.isfinite(series.values)]
    far = norms > max(limit, _OUTLIER * float(np.median(norms)))
    if 0 < far.sum() <= max(1, 0.02 * len(norms)):
        step = int(
            series.steps[np.nanargmax(np.where(np.isfinite(series.values), series.values, 0))]
        )
        yield constant_clipping.normal(
            f"norm {float(norms.max()):,.0f} before clipping at step {step}, on {int(far.sum())} of"
            f" {len(norms)} steps far above the usual {float(np.median(norms)):.3g}: the limit of"
            f" {limit:.3g} cut it, the update was as small as ever; no action needed",
            (Evidence(CLIP_NORM, (max(step - 20, 0), step + 20), "before clipping"),),
        )


def _fall(loss: Series | None) -> float | None:
    """By which share of its first level a loss has fallen."""
    if loss is None or len(loss) < 20:
        return None
    steps = loss.last - loss.first + 1
    first = level(loss, loss.first, loss.first + max(steps / 10, 5))
    last = level(loss, loss.first + steps * 2 / 3, loss.last + 1)
    return None if not first or last is None else (first - last) / first


def _percentile(facts: Facts, window: tuple[int, int]) -> float:
    series = facts.run[CLIP_NORM][""]
    inside = (series.steps >= window[0]) & np.isfinite(series.values)
    return float(np.percentile(series.values[inside], 95))


def _median(series: Series, window: tuple[int, int]) -> float:
    return float(np.nanmedian(series.values[series.steps >= window[0]]))


def _updates(window: tuple[int, int], update: float | None) -> Iterator[Evidence]:
    if update is not None:
        yield Evidence(UPDATE_RATIO, window, f"median over all parameters: {update:.1g} a step")
