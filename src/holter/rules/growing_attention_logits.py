"""Attention logits grow without a bound in sight."""

from collections.abc import Iterator

import numpy as np

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.rules._layers import Sample, sample
from holter.run import Run
from holter.signals import ATTENTION_ENTROPY, ATTENTION_LOGIT_ABSMAX

_FEWEST = 20  # sampled steps
_GROWTH = 5.0  # times the level of the first fifth
_RISING = 1.15  # times, from the middle of the last half to its end


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(ATTENTION_LOGIT_ABSMAX,),
    explains=(
        "loss-spike",
        "diverging-loss",
        "loss-plateau",
        "oscillating-loss",
        "exploding-gradients",
        "nonfinite-loss",
        "nonfinite-gradient",
        "nonfinite-weights",
    ),
)
def growing_attention_logits(
    run: Run, *, large: float = 50.0, one_sided: float = 0.2
) -> Iterator[Verdict]:
    """Attention logits grow without a bound in sight.

    ## What it does
    Takes the largest attention logit of each call of attention. It speaks where one has grown five
    times over, to more than `large`, and is still rising over the last quarter of the run. It is
    likely where the attention has become one-sided as well: its entropy is under `one_sided` of
    what it could be, and fell to less than half.

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
    logits = sample(run, ATTENTION_LOGIT_ABSMAX)
    if len(logits) < _FEWEST:
        yield growing_attention_logits.not_examined(
            f"{len(logits)} of the {_FEWEST} sampled steps needed"
        )
        return
    first, middle = logits.between(0, 0.2).medians(), logits.between(0.5, 0.75).medians()
    last = logits.between(0.85, 1).medians()
    running = (last > large) & (last > _GROWTH * first) & (last > _RISING * middle)
    top = int(np.nanargmax(np.where(running, last, -1) if running.any() else last))
    owner = logits.owners[top]
    said = f"the largest logit of {owner} went from {first[top]:.3g} to {last[top]:.3g}"
    if not running.any():
        yield growing_attention_logits.clear(said)
        return
    entropy = _entropy(run, owner)
    narrow = entropy is not None and entropy[1] < one_sided and entropy[1] < entropy[0] / 2
    evidence = [
        Evidence(
            ATTENTION_LOGIT_ABSMAX,
            (int(logits.steps[0]), int(logits.steps[-1])),
            f"{first[top]:.3g} at first, {middle[top]:.3g} half-way, {last[top]:.3g} at last;"
            f" {int(running.sum())} of {len(logits.owners)} calls grow like that",
            owner,
        )
    ]
    if entropy is not None:
        evidence.append(
            Evidence(
                ATTENTION_ENTROPY,
                (int(logits.steps[0]), int(logits.steps[-1])),
                f"from {entropy[0]:.0%} to {entropy[1]:.0%} of what it could be",
                owner,
            )
        )
    yield growing_attention_logits.finding(
        f"{said} and still rises" + (", and it looks at one position only" if narrow else ""),
        confidence=Confidence.LIKELY if narrow else Confidence.HINT,
        onset=_onset(logits, top, _GROWTH * float(first[top])),
        evidence=evidence,
        fix="normalise queries and keys (QK-norm), and see that logits are divided by the root of"
        " the head's size",
    )


def _onset(logits: Sample, column: int, level: float) -> int:
    above = logits.values[:, column] > level
    return int(logits.steps[above.argmax()])


def _entropy(run: Run, owner: str) -> tuple[float, float] | None:
    """The entropy of a call's attention at first and at last."""
    if ATTENTION_ENTROPY not in run:
        return None
    entropy = sample(run, ATTENTION_ENTROPY, [owner])
    if not len(entropy) or not len(entropy.owners):
        return None
    first, last = entropy.between(0, 0.2).medians()[0], entropy.between(0.85, 1).medians()[0]
    return float(first), float(last)
