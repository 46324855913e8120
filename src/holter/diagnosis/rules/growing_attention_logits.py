"""Attention logits keep growing."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.layers import Matrix, median
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import ATTENTION_ENTROPY, ATTENTION_LOGIT_ABSMAX

_FIRST = 3  # readings that make the initial level


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(ATTENTION_LOGIT_ABSMAX,),
)
def growing_attention_logits(
    facts: Facts,
    *,
    min_samples: Annotated[int, "sampled steps needed"] = 20,
    large: Annotated[float, "size of a logit above which growth matters"] = 100.0,
    growth: Annotated[float, "times the initial level"] = 5.0,
    rising: Annotated[float, "times by which logits still rise in the last half of the run"] = 1.15,
    one_sided: Annotated[
        float, "share of the largest entropy below which attention is narrow"
    ] = 0.2,
    one_position: Annotated[float, "share of it below which attention uses one position"] = 0.05,
) -> Iterator[Verdict]:
    """Attention logits keep growing.

    ## What it does
    Compares the largest logit of each attention call at the start, in the middle and at the end.
    Reports one that is large and still rising, or whose attention collapsed to a single position.
    The finding is likely if the entropy of the attention fell to less than half as well.

    ## Why it matters
    A softmax of logits in the hundreds attends to one position only, has no gradient, and overflows
    in half precision. The loss may not show it for thousands of steps.

    ## Example
    ```python
    scores = q @ k.transpose(-2, -1)                                            # bad
    scores = norm(q) @ norm(k).transpose(-2, -1) / q.size(-1) ** 0.5            # good
    ```

    ## What to do
    Divide the logits by the square root of the head's size, normalise queries and keys (QK-norm),
    or cap the logits. A lower learning rate only delays the growth.

    ## When it is wrong
    Heads that select one position, such as copying heads, have large logits by design, but these
    stop growing. Only a few samples and positions are read.

    ## How to confirm
    - Plot the largest logit over a longer run: the logits of a sound head level off.
    """
    logits = facts.sample(ATTENTION_LOGIT_ABSMAX)
    if len(logits) < min_samples:
        yield growing_attention_logits.not_examined(
            f"{len(logits)} of the {min_samples} sampled steps needed"
        )
        return
    first, middle = median(logits.values[:_FIRST], 0), logits.between(0.5, 0.75).medians()
    last = logits.between(0.85, 1).medians()
    if not np.isfinite(last).any():
        yield growing_attention_logits.not_examined("no attention logit is finite at the end")
        return
    before, after = _entropies(facts, logits.owners)
    narrow = (after < one_sided) & (after < before / 2)
    grown = (last > large) & (last > growth * first)
    running = grown & ((last > rising * middle) | (narrow & (after < one_position)))
    top = int(np.nanargmax(np.where(running, last, -1) if running.any() else last))
    owner = logits.owners[top]
    course = f"the largest logit of {owner} went from {first[top]:.3g} to {last[top]:.3g}"
    if not running.any():
        yield growing_attention_logits.clear(course)
        return
    entropy = f"its entropy fell from {percent(before[top])} to {after[top]:.2g} of the maximum"
    span = (int(logits.steps[0]), int(logits.steps[-1]))
    evidence = [
        Evidence(
            ATTENTION_LOGIT_ABSMAX,
            span,
            f"initially {first[top]:.3g}, {middle[top]:.3g} midway, {last[top]:.3g} at the end;"
            f" {int(running.sum())} of {len(logits.owners)} calls grow",
            owner,
        )
    ]
    if np.isfinite(after[top]):
        evidence.append(Evidence(ATTENTION_ENTROPY, span, entropy, owner))
    above = logits.values[:, top] > max(growth * first[top], large)
    yield growing_attention_logits.finding(
        course
        + (" and is still rising" if last[top] > rising * middle[top] else "")
        + (f"; {entropy}" if narrow[top] else ""),
        confidence=Confidence.LIKELY if narrow[top] else Confidence.HINT,
        onset=int(logits.steps[int(above.argmax())]),
        evidence=evidence,
        fix="normalise queries and keys (QK-norm) and divide the logits by the square root of the"
        " head's size: `q @ k.mT / q.size(-1) ** 0.5`",
    )


def _entropies(facts: Facts, owners: tuple[str, ...]) -> tuple[Matrix, Matrix]:
    """Return the initial and the final entropy of each call's attention; NaN if not recorded."""
    before, after = np.full(len(owners), np.nan), np.full(len(owners), np.nan)
    if ATTENTION_ENTROPY in facts.run:
        entropy = facts.sample(ATTENTION_ENTROPY, owners)
        places = [owners.index(owner) for owner in entropy.owners]
        if len(entropy):
            before[places] = median(entropy.values[:_FIRST], 0)
            after[places] = entropy.between(0.85, 1).medians()
    return before, after
