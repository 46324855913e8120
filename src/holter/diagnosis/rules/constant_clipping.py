"""Clipping shrinks the gradients so much that the model hardly learns."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.outcome import OutcomeState
from holter.diagnosis.facts.prevalence import RECENT
from holter.diagnosis.facts.progress import level, median_update, steps_follow_gradients
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent, portion
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import CLIP_COEFFICIENT, CLIP_LIMIT, CLIP_NORM, LOSS, UPDATE_RATIO

_OFTEN = 0.8  # share of clipped steps from which a note is worth it
_OUTLIER = 20  # times the median norm


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(CLIP_COEFFICIENT, CLIP_NORM, CLIP_LIMIT),
)
def constant_clipping(
    facts: Facts,
    *,
    min_steps: Annotated[int, "clipped steps needed"] = 50,
    max_coefficient: Annotated[float, "median clipping coefficient"] = 0.05,
    max_update: Annotated[float, "median relative update per step that counts as small"] = 1e-3,
    min_fall: Annotated[float, "fall of the loss, as a share, that counts as learning"] = 0.1,
) -> Iterator[Verdict]:
    """Clipping shrinks the gradients so much that the model hardly learns.

    ## What it does
    Looks at the last 200 clipped steps of an optimizer whose step size depends on the gradient norm
    (SGD, not Adam). Clipping nearly every step is a common recipe and only noted; it is reported if
    clipping leaves a small fraction of the gradients, updates are small, and the loss hardly fell.

    ## Why it matters
    With SGD, a clipping coefficient of 0.01 means a learning rate 100 times smaller than the
    configured one. Training then looks like a model that cannot learn.

    ## Example
    ```python
    clip_grad_norm_(model.parameters(), 0.001)  # bad
    clip_grad_norm_(model.parameters(), 1.0)  # good
    ```

    ## What to do
    Raise the limit to about the 95th percentile of the norms before clipping, so that it cuts
    outliers only. Or keep it and raise the learning rate by the same factor.

    ## When it is wrong
    The loss is flat for another reason. Deliberately normalised gradients (a limit far below every
    norm, with a matching learning rate) look the same when training makes no progress.

    ## How to confirm
    - Set the limit to the median of the norms before clipping and repeat the first 100 steps: the
      loss should fall at once.
    - Repeat with the learning rate divided by the median coefficient.
    """
    series = facts.run[CLIP_COEFFICIENT].get("")
    kept = np.isfinite(series.values) if series is not None else np.empty(0, bool)
    if series is None or kept.sum() < min_steps:
        yield constant_clipping.not_examined(
            f"{int(kept.sum())} of the {min_steps} clipped steps needed"
        )
        return
    clipping = _measure(facts, series.steps[kept][-RECENT:], series.values[kept][-RECENT:])
    loss, fall = facts.falling_loss, _fall(facts.falling_loss)
    update = median_update(facts, *clipping.window)
    follows = steps_follow_gradients(facts)
    is_small = update is None or update < max_update
    yield from _outliers(facts)
    if not follows or clipping.coefficient >= max_coefficient:
        if clipping.share > _OFTEN:
            yield constant_clipping.normal(f"{clipping}: {_effect(facts, clipping, follows)}")
        yield constant_clipping.clear(str(clipping))
    elif loss is None or fall is None:
        yield constant_clipping.not_examined(f"{clipping}; it is unknown whether the loss falls")
    elif (fall >= min_fall and not _is_above_constant(facts)) or not is_small:
        moved = "" if update is None else f", the median relative update is {update:.1g}"
        yield constant_clipping.harmless(f"{clipping}; the loss fell by {percent(fall)}{moved}")
    else:
        yield constant_clipping.finding(
            f"{clipping}: SGD trains at {clipping.coefficient:.2g} times its learning rate, and"
            f" the loss fell by {percent(max(fall, 0))}",
            confidence=Confidence.LIKELY if update is not None else Confidence.HINT,
            onset=int(series.steps[kept][0]),
            evidence=(
                Evidence(
                    CLIP_COEFFICIENT,
                    clipping.window,
                    f"median {clipping.coefficient:.2g}; 1 is unclipped",
                ),
                Evidence(
                    LOSS, (loss.first, loss.last), f"fell by {percent(max(fall, 0))} in total"
                ),
                *_updates(clipping.window, update),
            ),
            fix=f"raise the limit from {clipping.limit:.3g} to about {clipping.high_norm:.3g}, the"
            " 95th percentile of the norms, or remove the clipping",
        )


@dataclass(frozen=True, slots=True)
class _Clipping:
    """What clipping did on recent steps."""

    window: tuple[int, int]
    steps: int
    share: float  # of the steps that are clipped
    coefficient: float  # median share of the gradient that is left
    norm: float  # median before clipping
    high_norm: float  # 95th percentile before clipping
    limit: float

    def __str__(self) -> str:
        return (
            f"{portion(self.share)} of the last {self.steps} steps are clipped, median coefficient"
            f" {self.coefficient:.2g} (norm {self.norm:.3g}, limit {self.limit:.3g})"
        )


def _measure(facts: Facts, steps: np.ndarray, coefficients: np.ndarray) -> _Clipping:
    window = int(steps[0]), int(steps[-1])
    norm, limit = facts.run[CLIP_NORM][""], facts.run[CLIP_LIMIT][""]
    norms = norm.values[(norm.steps >= window[0]) & np.isfinite(norm.values)]
    return _Clipping(
        window=window,
        steps=len(steps),
        share=float((coefficients < 1).mean()),
        coefficient=float(np.median(coefficients)),
        norm=float(np.median(norms)),
        high_norm=float(np.percentile(norms, 95)),
        limit=float(np.nanmedian(limit.values[limit.steps >= window[0]])),
    )


def _effect(facts: Facts, clipping: _Clipping, follows: bool) -> str:
    if not follows:
        return "a common recipe; Adam divides the coefficient out, so the update size is unchanged"
    if not facts.rates:
        return f"a common recipe; it multiplies the learning rate by {clipping.coefficient:.2g}"
    rate = float(facts.rates[0].values[-1])
    return (
        "a common recipe; the effective learning rate is about"
        f" {rate * clipping.coefficient:.2g} instead of {rate:.2g}"
    )


def _is_above_constant(facts: Facts) -> bool:
    """Whether the loss still falls, but ends above that of the best constant prediction."""
    return facts.run_outcome.state is OutcomeState.FALLING


def _outliers(facts: Facts) -> Iterator[Verdict]:
    """A note that a few norms far above the limit were cut, as clipping is meant to do."""
    limit = float(np.median(facts.run[CLIP_LIMIT][""].values))
    series = facts.run[CLIP_NORM][""]
    norms = np.where(np.isfinite(series.values), series.values, 0)
    median = float(np.median(series.values[np.isfinite(series.values)]))
    count = int((norms > max(limit, _OUTLIER * median)).sum())
    if 0 < count <= max(1, 0.02 * len(norms)):
        step = int(series.steps[norms.argmax()])
        yield constant_clipping.normal(
            f"gradient norm {norms.max():,.0f} before clipping at step {step} (median"
            f" {median:.3g}), one of {count} outliers in {len(norms)} steps: the limit of"
            f" {limit:.3g} cut it, no action needed",
            (Evidence(CLIP_NORM, (max(step - 20, 0), step + 20), "before clipping"),),
        )


def _fall(loss: Series | None) -> float | None:
    """The fall of the loss as a share of its initial level."""
    if loss is None or len(loss) < 20:
        return None
    steps = loss.last - loss.first + 1
    first = level(loss, loss.first, loss.first + max(steps / 10, 5))
    last = level(loss, loss.first + steps * 2 / 3, loss.last + 1)
    return None if not first or last is None else (first - last) / first


def _updates(window: tuple[int, int], update: float | None) -> Iterator[Evidence]:
    if update is not None:
        yield Evidence(UPDATE_RATIO, window, f"median relative update {update:.1g} per step")
