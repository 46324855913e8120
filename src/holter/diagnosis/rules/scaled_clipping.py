"""Gradients are clipped while they still carry the loss scale of AMP."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import AMP_SCALE, CLIP_LIMIT, CLIP_SCALED

_RECENT = 200  # readings that are judged
_MOST = 0.9  # share of them that has to agree
_SMALL_SCALE = 2.0  # a scale that hardly alters the limit
_MADE_FOR_IT = 0.01  # a limit over this share of the scale was multiplied by it on purpose


@rule(
    severity=Severity.ERROR,
    level=Level.NUMERICS,
    needs=(CLIP_SCALED, AMP_SCALE),
)
def scaled_clipping(facts: Facts, *, min_steps: int = 5) -> Iterator[Verdict]:
    """Gradients are clipped while they still carry the loss scale of AMP.

    ## What it does
    Looks at whether the gradients were still multiplied by the scale of the GradScaler when the
    script clipped them: on at least `min_steps` steps and on 9 of 10 recent ones. A limit that the
    script multiplies by the scale itself is right, and told by its size.

    ## Why it matters
    The limit is compared with norms that are tens of thousands of times too large. Every step is
    clipped, and after the scaler has divided, what is left is the limit over the scale: about
    1e-5. SGD stands still; Adam survives until gradients come near its epsilon.

    ## What to do
    Call `scaler.unscale_(optimizer)` between `backward()` and `clip_grad_norm_`.

    ## When it is wrong
    A limit that is multiplied by the scale and still small beside it.

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
    carried = scaled.values > 0
    count = int(carried.sum())
    if scale < _SMALL_SCALE or count < min_steps or carried[-_RECENT:].mean() < _MOST:
        yield scaled_clipping.clear(
            f"gradients were unscaled before clipping on {len(scaled) - count} of {len(scaled)}"
            f" steps (scale {scale:.0f})"
        )
        return
    limits = facts.run[CLIP_LIMIT].get("") if CLIP_LIMIT in facts.run else None
    limit = float(np.median(limits.values)) if limits is not None and len(limits) else None
    if limit is not None and limit > _MADE_FOR_IT * scale:
        yield scaled_clipping.clear(
            f"the limit of {limit:.3g} was made for gradients with a scale of {scale:.0f}"
        )
        return
    first = int(scaled.steps[carried.argmax()])
    acts = "" if limit is None else f": the limit of {limit:.3g} acts as {limit / scale:.2g}"
    yield scaled_clipping.finding(
        f"gradients are clipped before scaler.unscale_() on {count} of {len(scaled)} steps, at a"
        f" scale of {scale:.0f}{acts}",
        confidence=Confidence.CERTAIN,
        onset=first,
        evidence=(
            Evidence(CLIP_SCALED, (first, scaled.last), f"1 on {count} of {len(scaled)} steps"),
            Evidence(AMP_SCALE, (first, scaled.last), f"median {scale:.0f}"),
        ),
        fix="call scaler.unscale_(optimizer) right before clip_grad_norm_",
    )
