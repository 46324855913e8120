"""Gradients are clipped before the AMP loss scale is removed."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.prevalence import prevails
from holter.diagnosis.rule import exception, rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import AMP_SCALE, CLIP_LIMIT, CLIP_SCALED

_SCALED_LIMIT = 0.01  # of the scale: a larger limit was multiplied by it


@exception
def scaled_limit(_: Facts, scale: float, limit: float | None) -> str | None:
    """The limit is also multiplied by the scale, so clipping is correct."""
    if limit is None or limit <= _SCALED_LIMIT * scale:
        return None
    return f"the limit of {limit:.3g} accounts for the loss scale of {scale:.0f}"


@rule(
    severity=Severity.ERROR,
    level=Level.NUMERICS,
    needs=(CLIP_SCALED, AMP_SCALE),
    exceptions=(scaled_limit,),
)
def scaled_clipping(
    facts: Facts,
    *,
    min_steps: Annotated[int, "clipped steps with scaled gradients that are reported"] = 5,
    min_share: Annotated[float, "their share of the recent clipped steps"] = 0.9,
    min_scale: Annotated[float, "scale below which clipping is hardly affected"] = 2.0,
) -> Iterator[Verdict]:
    """Gradients are clipped before the AMP loss scale is removed.

    ## What it does
    Checks whether gradients were still multiplied by the scale of the GradScaler when the script
    clipped them.

    ## Why it matters
    The limit is compared with norms that are tens of thousands of times too large. Every step is
    clipped, and after unscaling the norm is the limit divided by the scale, about 1e-5. SGD hardly
    moves; Adam is not affected until gradients come near its epsilon.

    ## Example
    ```python
    clip_grad_norm_(model.parameters(), 1.0); scaler.step(optimizer)  # bad
    scaler.unscale_(optimizer); clip_grad_norm_(model.parameters(), 1.0)  # good
    ```

    ## What to do
    Call `scaler.unscale_(optimizer)` between `backward()` and `clip_grad_norm_`.

    ## When it is wrong
    The limit is multiplied by the scale and still small compared with it.

    ## How to confirm
    - Print the norm that `clip_grad_norm_` returns, with and without `scaler.unscale_` before it:
      they differ by the scale.
    """
    scaled = facts.run[CLIP_SCALED].get("")
    if scaled is None or len(scaled) < min_steps:
        yield scaled_clipping.not_examined(
            f"{0 if scaled is None else len(scaled)} of the {min_steps} clipped steps needed"
        )
        return
    scale = float(np.median(facts.run[AMP_SCALE][""].values))
    is_scaled = scaled.values > 0
    count = int(is_scaled.sum())
    if scale < min_scale or not prevails(is_scaled, min_steps=min_steps, min_share=min_share):
        yield scaled_clipping.clear(
            f"gradients were unscaled before clipping on {len(scaled) - count} of {len(scaled)}"
            f" steps (scale {scale:.0f})"
        )
        return
    limits = facts.run[CLIP_LIMIT].get("") if CLIP_LIMIT in facts.run else None
    limit = float(np.median(limits.values)) if limits is not None and len(limits) else None
    if (excuse := scaled_clipping.excused(facts, scale, limit)) is not None:
        yield excuse
        return
    first = int(scaled.steps[is_scaled.argmax()])
    acts = "" if limit is None else f": a limit of {limit:.3g} acts as {limit / scale:.2g}"
    yield scaled_clipping.finding(
        f"gradients are clipped before scaler.unscale_() on {count} of {len(scaled)} steps, at a"
        f" scale of {scale:.0f}{acts}",
        confidence=Confidence.CERTAIN,
        onset=first,
        evidence=(
            Evidence(
                CLIP_SCALED, (first, scaled.last), f"scaled on {count} of {len(scaled)} steps"
            ),
            Evidence(AMP_SCALE, (first, scaled.last), f"median {scale:.0f}"),
        ),
        fix="call `scaler.unscale_(optimizer)` right before `clip_grad_norm_`",
    )
