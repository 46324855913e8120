"""AMP skips a good part of the steps."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import AMP_SCALE, AMP_SKIPPED

_SEARCH = 20  # first steps, in which the scaler looks for a scale
_RECENT = 200  # readings that are judged


@rule(
    severity=Severity.WARNING,
    level=Level.NUMERICS,
    needs=(AMP_SKIPPED,),
)
def skipped_steps(
    facts: Facts, *, min_steps: int = 50, max_share: float = 0.1
) -> Iterator[Verdict]:
    """AMP skips a good part of the steps.

    ## What it does
    Counts the steps that the GradScaler skipped among the last 200, once the first 20 are over and
    at least `min_steps` were read. More than `max_share` is a fault. Skips in the first steps, and
    one after each time the scale has grown, are how the scaler finds its scale, and only noted.

    ## Why it matters
    A skipped step costs as much as any other and learns nothing. Schedulers count it all the same,
    so the learning rate decays faster than it should.

    ## What to do
    If the scale falls as well, look for what overflows in float16. If it stays, the scaler grows it
    too often: set `growth_interval` back to 2000. If every step is skipped, some gradient is
    not finite whatever the scale: the loss or the inputs are.

    ## When it is wrong
    Runs of few hundred steps with a scaler that is still looking for its scale.

    ## How to confirm
    - Repeat some hundred steps in float32 or bfloat16 and look for gradients that are not finite.
    """
    skipped = facts.run[AMP_SKIPPED].get("")
    late = skipped.steps >= _SEARCH if skipped is not None else np.empty(0, bool)
    if skipped is None or late.sum() < min_steps:
        yield skipped_steps.not_examined(
            f"{int(late.sum())} of the {min_steps} steps needed after the first {_SEARCH}"
        )
        return
    steps, missed = skipped.steps[late][-_RECENT:], skipped.values[late][-_RECENT:] > 0
    share, count = float(missed.mean()), int(missed.sum())
    total = int((skipped.values > 0).sum())
    if share > max_share:
        first = int(skipped.steps[late][skipped.values[late] > 0][0])
        window = int(steps[0]), int(steps[-1])
        yield skipped_steps.finding(
            f"the GradScaler skipped {count} of the last {len(missed)} steps ({share:.0%}): nothing"
            " is learned from them",
            severity=Severity.ERROR if share > 0.9 else Severity.WARNING,
            confidence=Confidence.LIKELY,
            onset=first,
            evidence=(
                Evidence(AMP_SKIPPED, window, f"{count} of {len(missed)} steps"),
                *_scales(facts, window),
            ),
            fix="look for what overflows in float16 if the scale falls; raise growth_interval if"
            " it does not",
        )
        return
    if total:
        early = total - int((skipped.values[late] > 0).sum())
        yield skipped_steps.normal(
            f"the GradScaler skipped {total} of {len(skipped)} steps, {early} of them among the"
            f" first {_SEARCH}: so it finds its scale; gradients that are not finite there are no"
            " fault"
        )
    yield skipped_steps.clear(f"{count} of the last {len(missed)} steps were skipped")


def _scales(facts: Facts, window: tuple[int, int]) -> Iterator[Evidence]:
    scale = facts.run[AMP_SCALE].get("") if AMP_SCALE in facts.run else None
    if scale is not None and len(scale):
        inside = scale.values[scale.steps >= window[0]]
        if len(inside):
            yield Evidence(AMP_SCALE, window, f"{inside[0]:.6g} to {inside[-1]:.6g}")
