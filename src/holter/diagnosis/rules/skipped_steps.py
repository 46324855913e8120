"""GradScaler skips many steps."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import AMP_SCALE, AMP_SKIPPED

_RECENT = 200  # readings that are judged


@rule(
    severity=Severity.WARNING,
    level=Level.NUMERICS,
    needs=(AMP_SKIPPED,),
)
def skipped_steps(
    facts: Facts,
    *,
    search: Annotated[int, "first steps, in which the scaler searches for a scale"] = 20,
    min_steps: Annotated[int, "steps needed after the search"] = 50,
    max_share: Annotated[float, "largest share of skipped steps that is normal"] = 0.1,
    nearly_all: Annotated[float, "share of skipped steps above which it is an error"] = 0.9,
) -> Iterator[Verdict]:
    """GradScaler skips many steps.

    ## What it does
    Counts the steps that GradScaler skipped among the last 200, after its search for a scale. Skips
    in the first steps, and one after each growth of the scale, are normal.

    ## Why it matters
    A skipped step costs as much as any other but learns nothing. Schedulers still count it, so the
    learning rate decays faster than intended.

    ## Example
    ```python
    scaler = torch.amp.GradScaler("cuda", growth_interval=1)  # bad
    scaler = torch.amp.GradScaler("cuda")                     # good
    ```

    ## What to do
    If the scale falls, find what overflows in float16. If it does not, the scaler raises it too
    often: set `growth_interval=2000`. If every step is skipped, some gradient is not finite at any
    scale: check the loss and the inputs.

    ## When it is wrong
    Runs of a few hundred steps in which the scaler is still searching for its scale.

    ## How to confirm
    - Repeat 100 steps in float32 or bfloat16 and look for gradients that are not finite.
    """
    skipped = facts.run[AMP_SKIPPED].get("")
    late = skipped.steps >= search if skipped is not None else np.empty(0, bool)
    if skipped is None or late.sum() < min_steps:
        yield skipped_steps.not_examined(
            f"{int(late.sum())} of the {min_steps} steps needed after the first {search}"
        )
        return
    steps, missed = skipped.steps[late][-_RECENT:], skipped.values[late][-_RECENT:] > 0
    share, count = float(missed.mean()), int(missed.sum())
    if share > max_share:
        window = int(steps[0]), int(steps[-1])
        yield skipped_steps.finding(
            f"GradScaler skipped {count} of the last {len(missed)} steps ({percent(share)})",
            severity=Severity.ERROR if share > nearly_all else Severity.WARNING,
            confidence=Confidence.LIKELY,
            onset=int(skipped.steps[late][skipped.values[late] > 0][0]),
            evidence=(
                Evidence(AMP_SKIPPED, window, f"{count} of {len(missed)} steps"),
                *_scales(facts, window),
            ),
            fix="set `growth_interval=2000` in GradScaler; if the scale falls, keep what overflows"
            " in float32, or use bfloat16",
        )
        return
    total, early = int((skipped.values > 0).sum()), int((skipped.values[~late] > 0).sum())
    if total:
        yield skipped_steps.normal(
            f"GradScaler skipped {total} of {len(skipped)} steps, {early} of them among the first"
            f" {search}, while it searched for a scale"
        )
    yield skipped_steps.clear(f"{count} of the last {len(missed)} steps were skipped")


def _scales(facts: Facts, window: tuple[int, int]) -> Iterator[Evidence]:
    scale = facts.run[AMP_SCALE].get("") if AMP_SCALE in facts.run else None
    if scale is not None and len(scale):
        inside = scale.values[scale.steps >= window[0]]
        if len(inside):
            yield Evidence(
                AMP_SCALE, window, f"the scale went from {inside[0]:.3g} to {inside[-1]:.3g}"
            )
