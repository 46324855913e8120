"""The clipping limit is above the gradient outliers that it should clip."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.progress import level
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import CLIP_LIMIT, CLIP_NORM, LOSS


@rule(
    severity=Severity.INFO,
    level=Level.HYPERPARAMETER,
    needs=(CLIP_NORM, CLIP_LIMIT),
    preview=True,
)
def idle_clipping(
    facts: Facts,
    *,
    min_steps: Annotated[int, "norms needed"] = 50,
    outlier: Annotated[float, "times the median norm that a gradient must reach"] = 20.0,
    min_rise: Annotated[float, "rise of the loss afterwards, as a share"] = 0.5,
) -> Iterator[Verdict]:
    """The clipping limit is above the gradient outliers that it should clip.

    ## What it does
    Compares the norms before clipping with the limit. It reports gradients that jumped far above
    their median but stayed below the limit, if the loss is clearly higher after the jump.

    ## Why it matters
    Clipping is for the few steps whose gradients are far too large. With a limit above those, the
    script looks protected but is not.

    ## Example
    ```python
    clip_grad_norm_(model.parameters(), 1000.0)  # bad
    clip_grad_norm_(model.parameters(), 1.0)  # good
    ```

    ## What to do
    Set the limit to about the 95th percentile of the norms of ordinary steps.

    ## When it is wrong
    The loss rose for another reason, such as a bad batch or a learning rate that is too high; a
    lower limit then helps less.

    ## How to confirm
    - Repeat the run with the limit at the 95th percentile of the norms: the loss should stay low.
    """
    norm, limit = facts.run[CLIP_NORM].get(""), facts.run[CLIP_LIMIT].get("")
    kept = np.isfinite(norm.values) if norm is not None else np.empty(0, bool)
    if norm is None or limit is None or kept.sum() < min_steps:
        yield idle_clipping.not_examined(f"{int(kept.sum())} of the {min_steps} norms needed")
        return
    steps, norms = norm.steps[kept], norm.values[kept].astype(np.float64)
    at = np.clip(np.searchsorted(limit.steps, steps, "right") - 1, 0, None)
    limits = limit.values[at].astype(np.float64)
    if np.isinf(limits).all():
        yield idle_clipping.clear("the limit is infinite: the call only measures the norm")
        return
    active = int((norms > limits).sum())
    if active:
        yield idle_clipping.clear(
            f"clipping was active on {active} of {len(norms)} steps, limit {limits[-1]:.3g}"
        )
        return
    median = float(np.median(norms))
    below = f"no gradient norm of {len(norms)} steps reached the limit of {limits[-1]:.3g}"
    outliers = np.flatnonzero(norms > outlier * median)
    if not len(outliers):
        yield idle_clipping.normal(
            f"{below}; the largest is {norms.max():.3g}, the median {median:.3g}"
        )
        return
    first = int(steps[outliers[0]])
    jumped = (
        f"{below}, but {len(outliers)} exceed {outlier:.0f} times the median of {median:.3g}, up to"
        f" {norms.max():.3g}"
    )
    rise = _rise(facts, first)
    if rise is None or rise < min_rise:
        change = "" if rise is None else f"; the loss changed by {rise:+.0%} after step {first}"
        yield idle_clipping.harmless(jumped + change)
        return
    yield idle_clipping.finding(
        f"{jumped}, and the loss rose by {percent(rise)} after step {first}",
        confidence=Confidence.HINT,
        onset=int(steps[0]),
        evidence=(
            Evidence(
                CLIP_NORM,
                (int(steps[0]), int(steps[-1])),
                f"median {median:.3g}, largest {norms.max():.3g}, limit {limits[-1]:.3g}",
            ),
            Evidence(
                LOSS,
                (max(first - 50, 0), facts.run.steps - 1),
                f"{1 + rise:.3g} times the level before",
            ),
        ),
        fix=f"set the limit to about {np.percentile(norms[norms <= outlier * median], 95):.3g}, the"
        " 95th percentile of ordinary norms",
    )


def _rise(facts: Facts, step: int) -> float | None:
    """The rise of the loss after `step`, as a share of its level before."""
    loss = facts.falling_loss
    if loss is None:
        return None
    before, after = level(loss, step - 50, step), level(loss, step + 1, facts.run.steps)
    return None if not before or after is None else after / before - 1
