"""The loss scale of AMP keeps falling: gradients overflow at ever smaller scales."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.events import SkippedStep
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import AMP_SCALE, AMP_SKIPPED

_SETTLED = 20  # steps without a skip that end the first search for a scale


@rule(
    severity=Severity.ERROR,
    level=Level.NUMERICS,
    needs=(AMP_SCALE, AMP_SKIPPED),
)
def collapsing_loss_scale(
    facts: Facts, *, min_halvings: int = 5, min_skips: int = 5
) -> Iterator[Verdict]:
    """The loss scale of AMP keeps falling: gradients overflow at ever smaller scales.

    ## What it does
    Follows the scale of the GradScaler. The scaler begins high and halves until gradients fit: that
    search, up to the first 20 steps without a skip, is normal. The scale collapses where it
    falls by `min_halvings` or more after that and does not come back, with at least `min_skips`
    skipped steps; and where it is under 1, the search included: gradients then do not fit into
    float16 even without a scale.

    ## Why it matters
    Each halving is a step that was not made. At small scales, small gradients underflow to 0. A
    scale near 0 means that every step overflows: training has stopped, and no error says so.

    ## What to do
    Find what overflows: the loss itself, attention scores, or a layer without normalisation. Keep
    that part in float32 with `torch.autocast(..., enabled=False)`, or use bfloat16, which has the
    range of float32 and needs no scaler. If the loss was growing before, mend that first.

    ## When it is wrong
    A scaler with a growth interval longer than the run can only fall; some single large gradients
    far apart then add up.

    ## How to confirm
    - Repeat some hundred steps in bfloat16 or float32: a sound training goes on as before.
    - Look at the largest activations of each module on the step before the scale fell.
    """
    scale, skipped = facts.run[AMP_SCALE].get(""), facts.run[AMP_SKIPPED].get("")
    kept = (
        np.isfinite(scale.values) & (scale.values > 0) if scale is not None else np.empty(0, bool)
    )
    if scale is None or skipped is None or kept.sum() < 2 * _SETTLED:
        yield collapsing_loss_scale.not_examined(
            f"{int(kept.sum())} of the {2 * _SETTLED} loss scales needed"
        )
        return
    steps, values = scale.steps[kept], scale.values[kept].astype(np.float64)
    told = [event.step for event in facts.run.events_of(SkippedStep)]
    skips = np.union1d(skipped.steps[skipped.values > 0], np.array(told, np.int64))
    settled = _settled(steps, skips)
    last = float(values[-1])
    after = values[steps >= settled]
    # a scale that never settled has been searched for during the whole run
    highest = float(after.max()) if len(after) else float(values[0])
    halvings = float(np.log2(highest / last)) if len(after) else 0.0
    late = int((skips >= settled).sum()) if len(after) else len(skips)
    went = f"the loss scale went from {highest:.6g} to {last:.3g}, with {late} skipped steps"
    low = float(values.min()) < 1 and last < 1 and len(skips) >= min_skips
    if not low and (halvings < min_halvings or late < min_skips):
        yield collapsing_loss_scale.clear(went)
        return
    since = int(steps[values <= highest / 2][0]) if (values <= highest / 2).any() else int(steps[0])
    onset = int(skips[skips >= min(settled, since)][0]) if late else since
    yield collapsing_loss_scale.finding(
        f"{went}: " + ("gradients do not fit into float16" if last < 1 else "it does not recover"),
        confidence=Confidence.LIKELY,
        onset=onset,
        evidence=(
            Evidence(AMP_SCALE, (onset, int(steps[-1])), f"{highest:.6g} to {last:.3g}"),
            Evidence(
                AMP_SKIPPED, (onset, int(steps[-1])), f"{late} of {len(after) or len(values)} steps"
            ),
        ),
        fix="use bfloat16, or keep in float32 what overflows",
    )


def _settled(steps: np.ndarray, skips: np.ndarray) -> int:
    """The step from which on the first search for a scale is over; past the end if it never is."""
    edges = np.concatenate([[steps[0] - 1], skips, [steps[-1] + 1]])
    calm = np.flatnonzero(np.diff(edges) > _SETTLED)
    return int(edges[calm[0]]) + 1 if len(calm) else int(steps[-1]) + 1
