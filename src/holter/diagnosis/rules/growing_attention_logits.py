"""Attention logits grow without a bound in sight."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.layers import Matrix, median
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import ATTENTION_ENTROPY, ATTENTION_LOGIT_ABSMAX

_FEWEST = 20  # sampled steps
_FIRST = 3  # of which these make the beginning
_GROWTH = 5.0  # times the level of the beginning
_RISING = 1.15  # times, from the third quarter of the readings to their end
_ONE = 0.05  # share of its largest entropy at which attention looks at one position


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(ATTENTION_LOGIT_ABSMAX,),
)
def growing_attention_logits(
    facts: Facts, *, large: float = 100.0, one_sided: float = 0.2
) -> Iterator[Verdict]:
    """Attention logits grow without a bound in sight.

    ## What it does
    Takes the largest attention logit of each call of attention. It speaks where one has grown five
    times over, to more than `large`, and is still rising at the end of the readings. It is likely
    where the attention has become one-sided as well: its entropy is under `one_sided` of what it
    could be, and fell to less than half. Where that entropy is under a twentieth, logits may have
    come to rest: nothing is left to learn from.

    ## Why it matters
    A softmax of logits in the hundreds looks at one position only, has no gradient, and overflows
    in half precision. It may go on for thousands of steps before the loss shows it.

    ## What to do
    Scale queries by the root of their size, normalise queries and keys (QK-norm), or cap the
    logits. A lower learning rate only puts it off.

    ## When it is wrong
    Heads that pick out one position, such as copying heads, have large logits when they are right;
    those settle. Logits are read of a few samples and positions only.

    ## How to confirm
    - Plot the largest logit over a longer run: a head that works settles, a runaway one does not.
    """
    logits = facts.sample(ATTENTION_LOGIT_ABSMAX)
    if len(logits) < _FEWEST:
        yield growing_attention_logits.not_examined(
            f"{len(logits)} of the {_FEWEST} sampled steps needed"
        )
        return
    first, middle = median(logits.values[:_FIRST], 0), logits.between(0.5, 0.75).medians()
    last = logits.between(0.85, 1).medians()
    if not np.isfinite(last).any():
        yield growing_attention_logits.not_examined("no attention logit is finite at the end")
        return
    before, now = _entropies(facts, logits.owners)
    narrow = (now < one_sided) & (now < before / 2)
    grown = (last > large) & (last > _GROWTH * first)
    running = grown & ((last > _RISING * middle) | (narrow & (now < _ONE)))
    top = int(np.nanargmax(np.where(running, last, -1) if running.any() else last))
    owner = logits.owners[top]
    said = f"the largest logit of {owner} went from {first[top]:.3g} to {last[top]:.3g}"
    if not running.any():
        yield growing_attention_logits.clear(said)
        return
    rises = ", and still rises" if last[top] > _RISING * middle[top] else ""
    one = ", and it looks at one position only" if narrow[top] else ""
    span = (int(logits.steps[0]), int(logits.steps[-1]))
    evidence = [
        Evidence(
            ATTENTION_LOGIT_ABSMAX,
            span,
            f"{first[top]:.3g} at first, {middle[top]:.3g} half-way, {last[top]:.3g} at last;"
            f" {int(running.sum())} of {len(logits.owners)} calls grow like that",
            owner,
        )
    ]
    if np.isfinite(now[top]):
        says = f"from {before[top]:.0%} to {now[top]:.1%} of what it could be"
        evidence.append(Evidence(ATTENTION_ENTROPY, span, says, owner))
    above = logits.values[:, top] > max(_GROWTH * first[top], large)
    yield growing_attention_logits.finding(
        f"{said}{rises}{one}",
        confidence=Confidence.LIKELY if narrow[top] else Confidence.HINT,
        onset=int(logits.steps[int(above.argmax())]),
        evidence=evidence,
        fix="normalise queries and keys (QK-norm), and see that logits are divided by the root of"
        " the head's size",
    )


def _entropies(facts: Facts, owners: tuple[str, ...]) -> tuple[Matrix, Matrix]:
    """The entropy of each call's attention at first and at last; NaN where it was not read."""
    before, now = np.full(len(owners), np.nan), np.full(len(owners), np.nan)
    if ATTENTION_ENTROPY in facts.run:
        entropy = facts.sample(ATTENTION_ENTROPY, owners)
        places = [owners.index(each) for each in entropy.owners]
        if len(entropy):
            before[places] = median(entropy.values[:_FIRST], 0)
            now[places] = entropy.between(0.85, 1).medians()
    return before, now
