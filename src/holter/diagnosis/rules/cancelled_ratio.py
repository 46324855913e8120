"""A ratio of probabilities compares the model with itself, so that its gradient is zero."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import portion
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, LOSS_RATIO_CANCELLED


@rule(severity=Severity.ERROR, level=Level.ARCHITECTURE, needs=(LOSS,), preview=True)
def cancelled_ratio(
    facts: Facts,
    *,
    min_steps: Annotated[int, "sampled steps needed"] = 5,
    min_share: Annotated[float, "share of these steps on which gradients cancel out"] = 0.99,
) -> Iterator[Verdict]:
    """A ratio of probabilities compares the model with itself, so that its gradient is zero.

    ## What it does
    Reads exponentials of differences in the loss, such as `exp(new_logp - old_logp)`, of which both
    sides have a gradient. It reports a ratio that is 1 everywhere on all sampled steps.

    ## Why it matters
    The gradients of both sides cancel out: this part of the loss trains nothing, while entropy and
    value terms go on changing the loss.

    ## Example
    ```python
    old_logp = policy(obs).log_prob(act)            # bad
    old_logp = policy(obs).log_prob(act).detach()   # good
    ```

    ## What to do
    Store the log-probabilities when the actions are drawn, under `torch.no_grad()`, and use the
    stored values in the ratio.

    ## When it is wrong
    A ratio of two models with equal weights and outputs, before they have been trained.

    ## How to confirm
    - Print `ratio.min(), ratio.max()` in the second epoch on the same rollout.
    - Print `old_logp.requires_grad`: it must be False.
    """
    read = facts.run[LOSS_RATIO_CANCELLED].get("") if LOSS_RATIO_CANCELLED in facts.run else None
    if read is None or len(read) < min_steps:
        yield cancelled_ratio.not_examined("the loss has no exponential of a difference")
        return
    share = float(read.values.mean())
    measured = (
        f"a ratio in the loss is 1, with a gradient on both sides, on {portion(share)} of"
        f" {len(read)} sampled steps"
    )
    if share < min_share:
        yield cancelled_ratio.clear(measured)
        return
    yield cancelled_ratio.finding(
        f"{measured}: the gradients of both sides cancel out",
        confidence=Confidence.LIKELY,
        onset=read.first,
        evidence=(
            Evidence(
                LOSS_RATIO_CANCELLED, (read.first, read.last), f"on {portion(share)} of the steps"
            ),
        ),
        fix="detach the old side: `ratio = (new_logp - old_logp.detach()).exp()`, with `old_logp`"
        " from the rollout",
    )
