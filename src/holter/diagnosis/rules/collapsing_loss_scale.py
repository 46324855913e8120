"""The loss scale of AMP falls and does not recover."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.events import SkippedStep
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import AMP_SCALE, AMP_SKIPPED

Steps = npt.NDArray[np.int64]


@rule(
    severity=Severity.ERROR,
    level=Level.NUMERICS,
    needs=(AMP_SCALE, AMP_SKIPPED),
)
def collapsing_loss_scale(
    facts: Facts,
    *,
    settled_after: Annotated[
        int, "steps without a skip after which the search for a scale is over"
    ] = 20,
    min_halvings: Annotated[int, "halvings after the search that count as a collapse"] = 5,
    min_skips: Annotated[int, "skipped steps that count as a collapse"] = 5,
) -> Iterator[Verdict]:
    """The loss scale of AMP falls and does not recover.

    ## What it does
    Tracks the scale of GradScaler, which starts high and is halved until gradients fit: this search
    is normal. The scale has collapsed if it is halved several more times after the search, or ends
    below 1: gradients then do not fit into float16 even without a scale.

    ## Why it matters
    Each halving is a skipped step. At small scales, small gradients underflow to 0. A scale near 0
    means that every step overflows: training has stopped without an error message.

    ## Example
    ```python
    scores = q @ k.transpose(-2, -1)                              # bad
    scores = q.float() @ k.float().transpose(-2, -1) / dim**0.5   # good
    ```

    ## What to do
    Find what overflows: the loss itself, attention scores, or a layer without normalisation. Keep
    that part in float32 with `torch.autocast(..., enabled=False)`, or use bfloat16, which has the
    range of float32 and needs no scaler. If the loss grew before, fix that first.

    ## When it is wrong
    If the growth interval is longer than the run, the scale can only fall, and isolated large
    gradients add up.

    ## How to confirm
    - Repeat 100 steps in bfloat16 or float32: a sound training continues as before.
    - Look at the largest activations of each module on the step before the scale fell.
    """
    scale, skipped = facts.run[AMP_SCALE].get(""), facts.run[AMP_SKIPPED].get("")
    kept = (
        np.isfinite(scale.values) & (scale.values > 0) if scale is not None else np.empty(0, bool)
    )
    if scale is None or skipped is None or kept.sum() < 2 * settled_after:
        yield collapsing_loss_scale.not_examined(
            f"{int(kept.sum())} of the {2 * settled_after} loss scales needed"
        )
        return
    steps, values = scale.steps[kept], scale.values[kept].astype(np.float64)
    skip_events = [event.step for event in facts.run.events_of(SkippedStep)]
    skips = np.union1d(facts.skipped_steps, np.array(skip_events, np.int64))
    settled = _settled(steps, skips, settled_after)
    after = values[steps >= settled]
    # if it never settled, the whole run was a search
    highest, last = float(after.max() if len(after) else values[0]), float(values[-1])
    halvings = float(np.log2(highest / last)) if len(after) else 0.0
    late = int((skips >= settled).sum()) if len(after) else len(skips)
    course = f"the loss scale went from {highest:.3g} to {last:.3g}, with {late} skipped steps"
    below_one = last < 1 and len(skips) >= min_skips
    if not below_one and (halvings < min_halvings or late < min_skips):
        yield collapsing_loss_scale.clear(course)
        return
    fallen = values <= highest / 2
    since = int(steps[fallen.argmax()])
    onset = int(skips[skips >= min(settled, since)][0]) if late else since
    window = onset, int(steps[-1])
    yield collapsing_loss_scale.finding(
        course + ("; gradients do not fit into float16 at any scale" if last < 1 else ""),
        confidence=Confidence.LIKELY,
        onset=onset,
        evidence=(
            Evidence(AMP_SCALE, window, f"{highest:.3g} to {last:.3g}"),
            Evidence(AMP_SKIPPED, window, f"{late} of {len(after) or len(values)} steps"),
        ),
        fix='use `torch.autocast("cuda", dtype=torch.bfloat16)` without GradScaler, or keep what '
        "overflows in float32",
    )


def _settled(steps: Steps, skips: Steps, settled_after: int) -> int:
    """Return the step at which the first search for a scale is over; past the end if it is not."""
    edges = np.concatenate([[steps[0] - 1], skips, [steps[-1] + 1]])
    calm = np.flatnonzero(np.diff(edges) > settled_after)
    return int(edges[calm[0]]) + 1 if len(calm) else int(steps[-1]) + 1
