"""Predictions and targets have different shapes, and the loss compares all with all."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import last, readings
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import OUTPUT_SPREAD, OUTPUT_UNITS, TARGET_BROADCAST, TARGET_STD

_MOST = 0.9  # share of steps: the last batch of an epoch may be odd
_COLLAPSED = 0.2  # spread of the predictions over that of the targets


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(TARGET_BROADCAST,),
)
def broadcast_loss(facts: Facts, *, min_steps: int = 3) -> Iterator[Verdict]:
    """Predictions and targets have different shapes, and the loss compares all with all.

    ## What it does
    Looks at the shapes that an elementwise loss, such as `F.mse_loss`, is given. It speaks where
    the loss broadcasts them on at least nine of ten sampled steps (at least `min_steps`) and
    targets vary: then (N,) against (N, 1) becomes (N, N), each prediction compared with every
    target. Where a prediction has several units, all pairs may be meant, as in distributional
    reinforcement learning: then it speaks only if predictions hardly differ between samples.

    ## Why it matters
    The best answer to all targets at once is their mean. The model learns that and nothing else,
    with a loss that falls at first and looks like a hard task.

    ## What to do
    Give both the same shape: `prediction.squeeze(1)` or `target.unsqueeze(1)`, and check it once
    with an `assert`.

    ## When it is wrong
    Comparing all pairs of single numbers on purpose, as in a loss on ranks. One target for many
    predictions, as of an ensemble, makes no more elements than there are predictions: it is not
    taken for this.

    ## How to confirm
    - Print both shapes before the loss.
    """
    for owner, broadcast in facts.run[TARGET_BROADCAST].items():
        if not len(broadcast):
            continue
        share = float(broadcast.values.mean())
        units = last(facts, OUTPUT_UNITS, owner) or 1
        said = (
            f"{owner} broadcasts predictions and targets on {share:.0%} of {len(broadcast)} steps"
        )
        collapse = _collapse(facts, owner)
        if share < _MOST:
            yield broadcast_loss.clear(said)
        elif last(facts, TARGET_STD, owner) == 0:
            yield broadcast_loss.clear(f"{said}; the targets are all the same")
        elif units > 1 and (collapse is None or collapse > _COLLAPSED):
            yield broadcast_loss.normal(f"{said}, of {units:.0f} units: all pairs may be meant")
            yield broadcast_loss.clear(f"{said}, of {units:.0f} units, and predictions vary")
        elif len(broadcast) < min_steps:
            yield broadcast_loss.not_examined(f"{len(broadcast)} of the {min_steps} steps needed")
        else:
            span = (broadcast.first, broadcast.last)
            evidence = [Evidence(TARGET_BROADCAST, span, f"on {share:.0%} of the steps", owner)]
            if collapse is not None:
                says = f"{collapse:.2g} of the spread of the targets at last"
                evidence.append(Evidence(OUTPUT_SPREAD, span, says, owner))
            yield broadcast_loss.finding(
                f"{owner} is given predictions and targets of different shapes on {share:.0%} of"
                f" {len(broadcast)} sampled steps: it compares each prediction with every target",
                confidence=Confidence.CERTAIN if units == 1 else Confidence.LIKELY,
                onset=broadcast.first,
                evidence=evidence,
                fix="give both the same shape: prediction.squeeze(1) or target.unsqueeze(1)",
            )


def _collapse(facts: Facts, owner: str) -> float | None:
    """How much predictions differ between samples at last, over how much targets do."""
    spread, width = readings(facts, OUTPUT_SPREAD, owner), last(facts, TARGET_STD, owner)
    if not len(spread) or not width:
        return None
    return float(np.median(spread[-max(len(spread) // 4, 1) :])) / width
