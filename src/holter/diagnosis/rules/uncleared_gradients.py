"""Gradients of past steps are never cleared."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAD_CARRIED_FRACTION, GRAD_TOTAL_NORM

_RECENT = 50  # readings that are judged
_MOST = 0.9  # share of them that has to agree
_ALL = 0.99  # share of the parameters that counts as all of them


@rule(
    severity=Severity.ERROR,
    level=Level.PROCEDURE,
    needs=(GRAD_CARRIED_FRACTION,),
)
def uncleared_gradients(facts: Facts, *, min_steps: int = 5) -> Iterator[Verdict]:
    """Gradients of past steps are never cleared.

    ## What it does
    Looks at how many of the watched parameters still held the gradient of the optimizer's last
    step when the next one took place: on at least `min_steps` steps, and on 9 of 10 recent ones.
    Accumulation by intent, several `backward()` and then one `step()` and `zero_grad()`, reads 0
    here: only gradients that survive an optimizer step count.

    ## Why it matters
    `backward()` adds to what is there. Without `zero_grad()` every step uses the sum of all
    gradients so far: the direction is that of old batches and old weights, the step grows with
    time, and the loss swings or diverges while the code looks right.

    ## What to do
    Call `optimizer.zero_grad()` once per step, before `backward()` or right after
    `optimizer.step()`. If only a part is carried over, the call reaches only some of the
    parameters: clear those of every module that this optimizer holds.

    ## When it is wrong
    Loops that keep gradients across steps by design, such as momentum kept by hand in `.grad`. A
    finding about a part of the parameters may point at some that are used now and then and cleared
    by code of their own.

    ## How to confirm
    - Print `next(model.parameters()).grad` right before `backward()` in the second step: it should
      be `None` or 0.
    - Add `optimizer.zero_grad()` right before `backward()` and compare the first 50 losses.
    """
    for owner, carried in facts.run[GRAD_CARRIED_FRACTION].items():
        # nothing can be carried into an optimizer's first step
        since = 1 if len(carried) and carried.values[0] == 0 else 0
        steps, share = carried.steps[since:], carried.values[since:]
        if len(share) < min_steps:
            yield uncleared_gradients.not_examined(
                f"{len(share)} of the {min_steps} steps needed after the first{of(owner)}"
            )
            continue
        whole = _holds(share >= _ALL, min_steps)
        kept = share >= _ALL if whole else share > 0
        count = int(kept.sum())
        if not _holds(kept, min_steps):
            yield uncleared_gradients.clear(
                f"gradients{of(owner)} were cleared before {len(share) - count} of"
                f" {len(share)} steps"
            )
            continue
        first, last = int(steps[kept.argmax()]), int(steps[-1])
        typical = float(np.median(share[-_RECENT:]))
        which = "all watched parameters" if whole else f"{typical:.0%} of the watched parameters"
        yield uncleared_gradients.finding(
            f"gradients{of(owner)} are not cleared between steps: since step {first}, {which} keep"
            f" theirs, on {count} of {len(share)} steps",
            confidence=Confidence.CERTAIN if whole else Confidence.LIKELY,
            onset=first,
            evidence=(
                Evidence(
                    GRAD_CARRIED_FRACTION,
                    (max(first - 1, 0), last),
                    f"median {typical:.2f} over the last {min(len(share), _RECENT)} steps; 0 where"
                    " gradients are cleared",
                    owner,
                ),
                *_growth(facts, owner),
            ),
            fix="call optimizer.zero_grad() before every backward()"
            if whole
            else "call zero_grad() on the optimizer, not on a part of the model",
        )


def _holds(kept: npt.NDArray[np.bool_], min_steps: int) -> bool:
    return bool(kept.sum() >= min_steps and kept[-_RECENT:].mean() >= _MOST)


def _growth(facts: Facts, owner: str) -> Iterator[Evidence]:
    """How the gradient norm went from the first five steps to the last five, where recorded."""
    if GRAD_TOTAL_NORM not in facts.run or owner not in facts.run[GRAD_TOTAL_NORM]:
        return
    norm = facts.run[GRAD_TOTAL_NORM][owner]
    if len(norm) >= 10:
        first, last = np.median(norm.values[:5]), np.median(norm.values[-5:])
        yield Evidence(
            GRAD_TOTAL_NORM,
            (norm.first, norm.last),
            f"median of the first 5 steps {first:.3g}, of the last 5 {last:.3g}",
            owner,
        )
