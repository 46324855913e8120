"""The clipping limit lies above the gradients that it is meant to cut."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.progress import level
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import CLIP_LIMIT, CLIP_NORM, LOSS

_OUTLIER = 20  # times the usual norm


@rule(
    severity=Severity.INFO,
    level=Level.HYPERPARAMETER,
    needs=(CLIP_NORM, CLIP_LIMIT),
    preview=True,
)
def idle_clipping(facts: Facts, *, min_steps: int = 50, min_rise: float = 0.5) -> Iterator[Verdict]:
    """The clipping limit lies above the gradients that it is meant to cut.

    ## What it does
    Compares the norms before clipping with the limit, over at least `min_steps` steps. A limit
    that was never reached is a net that nothing fell into, and only noted. It is a fault where
    gradients jumped to 20 times their usual norm and more, still under the limit, and the loss
    after the jump is higher by `min_rise` of what it was before.

    ## Why it matters
    Clipping is there for the few steps whose gradients are far out of proportion. With a limit
    above those, the script looks protected and is not.

    ## What to do
    Set the limit to about the 95th percentile of the norms of ordinary steps.

    ## When it is wrong
    Where the loss rose for another reason, such as a bad batch or a learning rate that is too high,
    the large gradients are an effect of it; a tighter limit then helps less.

    ## How to confirm
    - Repeat the run with the limit at the 95th percentile of the norms: the loss should stay calm.
    """
    norm, limit = facts.run[CLIP_NORM].get(""), facts.run[CLIP_LIMIT].get("")
    kept = np.isfinite(norm.values) if norm is not None else np.empty(0, bool)
    if norm is None or limit is None or kept.sum() < min_steps:
        yield idle_clipping.not_examined(f"{int(kept.sum())} of the {min_steps} norms needed")
        return
    steps, norms = norm.steps[kept], norm.values[kept].astype(np.float64)
    at = np.clip(np.searchsorted(limit.steps, steps, "right") - 1, 0, None)
    limits = limit.values[at].astype(np.float64)
    active = int((norms > limits).sum())
    if active:
        yield idle_clipping.clear(
            f"clipping was active on {active} of {len(norms)} steps, limit {limits[-1]:.3g}"
        )
        return
    usual = float(np.median(norms))
    below = f"no norm of {len(norms)} steps reached the limit of {limits[-1]:.3g}"
    if np.isinf(limits).all():
        yield idle_clipping.clear("the limit is infinite: the norms are only measured")
        return
    outliers = np.flatnonzero(norms > _OUTLIER * usual)
    first = int(steps[outliers[0]]) if len(outliers) else -1
    rise = _rise(facts, first) if first >= 0 else None
    if rise is None or rise < min_rise:
        yield idle_clipping.normal(
            f"{below}; the largest is {norms.max():.3g}, the usual {usual:.3g}: a net that nothing"
            " fell into"
        )
        yield idle_clipping.clear(
            f"largest norm {norms.max():.3g}, the usual one {usual:.3g}"
            + ("" if rise is None else f"; the loss is at {1 + rise:.2f} times its level before it")
        )
        return
    yield idle_clipping.finding(
        f"{below}, though {len(outliers)} are over {_OUTLIER} times the usual {usual:.3g}, up to"
        f" {norms.max():.3g}, and the loss rose by {rise:.0%} after the first at step {first}",
        confidence=Confidence.HINT,
        onset=int(steps[0]),
        evidence=(
            Evidence(
                CLIP_NORM,
                (int(steps[0]), int(steps[-1])),
                f"median {usual:.3g}, largest {norms.max():.3g}, limit {limits[-1]:.3g}",
            ),
            Evidence(
                LOSS, (max(first - 50, 0), facts.run.steps - 1), f"{1 + rise:.2f} times as high"
            ),
        ),
        fix=f"set the limit to about {np.percentile(norms[norms <= _OUTLIER * usual], 95):.3g}, the"
        " 95th percentile of ordinary norms",
    )


def _rise(facts: Facts, step: int) -> float | None:
    """By which share of its level before `step` the loss is higher after it."""
    loss = facts.falling_loss
    if loss is None:
        return None
    before, after = level(loss, step - 50, step), level(loss, step + 1, facts.run.steps)
    return None if not before or after is None else after / before - 1
