"""Predictions and targets have different shapes, so the loss compares every pair of them."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import last, readings
from holter.diagnosis.facts.handwritten import is_handwritten, loss_name
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import portion
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    LOSS,
    LOSS_PAIRED_SPREAD,
    OUTPUT_SPREAD,
    OUTPUT_UNITS,
    TARGET_BROADCAST,
    TARGET_STD,
)


@exception
def equal_targets(facts: Facts, function: str) -> str | None:
    """All targets are equal, so pairing a prediction with the wrong target makes no difference."""
    if last(facts, TARGET_STD, function) != 0:
        return None
    return f"{function} broadcasts predictions and targets, and all targets are equal"


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(LOSS,),
    exceptions=(equal_targets,),
)
def broadcast_loss(
    facts: Facts,
    *,
    min_steps: Annotated[int, "sampled steps needed"] = 3,
    min_share: Annotated[float, "share of the steps that broadcast; a last batch may differ"] = 0.9,
    max_spread: Annotated[float, "standard deviation of predictions over that of targets"] = 0.2,
) -> Iterator[Verdict]:
    """Predictions and targets have different shapes, so the loss compares every pair of them.

    ## What it does
    Checks the input shapes of elementwise losses such as `F.mse_loss`, and of differences in a
    hand-written loss, and reports broadcasting: (N,) against (N, 1) becomes (N, N). Multi-output
    predictions and hand-written losses may compare all pairs on purpose, as in distributional
    reinforcement learning: they are reported only if predictions barely differ between samples.

    ## Why it matters
    The best prediction for all targets at once is their mean, and that is all the model learns. The
    loss falls initially and then looks like that of a hard task.

    ## Example
    ```python
    loss = F.mse_loss(model(x), y)              # bad
    loss = F.mse_loss(model(x).squeeze(1), y)   # good
    ```

    ## What to do
    Give both the same shape with `prediction.squeeze(1)` or `target.unsqueeze(1)`, and check it:
    `assert prediction.shape == target.shape`.

    ## When it is wrong
    All pairs are compared on purpose, as in a ranking loss. One target for several predictions, as
    in an ensemble, does not count as broadcasting.

    ## How to confirm
    - Print both shapes before the loss.
    """
    functions = (
        {
            function: series
            for function, series in facts.run[TARGET_BROADCAST].items()
            if len(series)
        }
        if TARGET_BROADCAST in facts.run
        else {}
    )
    if not any(series.values.mean() >= min_share for series in functions.values()):
        yield from _differences(facts, min_steps, max_spread, examined=bool(functions))
    for function, broadcast in functions.items():
        share = float(broadcast.values.mean())
        measured = (
            f"{loss_name(facts, function)} broadcasts predictions and targets on {portion(share)}"
            f" of {len(broadcast)} sampled steps"
        )
        if share < min_share:
            yield broadcast_loss.clear(measured)
            continue
        if len(broadcast) < min_steps:
            yield broadcast_loss.not_examined(f"{len(broadcast)} of the {min_steps} steps needed")
            continue
        excuse = broadcast_loss.excused(facts, function)
        if excuse is not None:
            yield excuse
            continue
        units, spread = last(facts, OUTPUT_UNITS, function) or 1, _relative_spread(facts, function)
        span = (broadcast.first, broadcast.last)
        evidence = [Evidence(TARGET_BROADCAST, span, f"on {portion(share)} of the steps", function)]
        confidence = Confidence.CERTAIN
        if spread is not None:
            says = f"{spread:.2g} times the standard deviation of the targets at the end"
            evidence.append(Evidence(OUTPUT_SPREAD, span, says, function))
        if units > 1 or is_handwritten(facts, function):
            if spread is not None and spread > max_spread:
                yield broadcast_loss.harmless(f"{measured}; predictions vary", evidence)
                continue
            confidence = Confidence.HINT if spread is None else Confidence.LIKELY
        yield broadcast_loss.finding(
            f"{measured}: it compares each prediction with every target",
            confidence=confidence,
            onset=broadcast.first,
            evidence=evidence,
            fix="give both the same shape: `prediction.squeeze(1)` or `target.unsqueeze(1)`",
        )


def _differences(
    facts: Facts, min_steps: int, max_spread: float, *, examined: bool
) -> Iterator[Verdict]:
    """Judge the differences of a loss written by hand, beside loss functions that are called."""
    spread = facts.run[LOSS_PAIRED_SPREAD].get("") if LOSS_PAIRED_SPREAD in facts.run else None
    if spread is None or len(spread) < min_steps:
        if not examined:
            yield broadcast_loss.not_examined("the loss is not elementwise")
        return
    end = float(np.median(spread.values[-max(len(spread) // 4, 1) :]))
    measured = "a difference in the loss pairs every prediction with every target, (N, N)"
    says = f"{end:.2g} times the standard deviation of the targets at the end"
    evidence = (Evidence(LOSS_PAIRED_SPREAD, (spread.first, spread.last), says),)
    if not end <= max_spread:
        yield broadcast_loss.harmless(f"{measured}; predictions vary", evidence)
        return
    yield broadcast_loss.finding(
        f"{measured}: predictions vary by {end:.2g} times as much as targets",
        confidence=Confidence.LIKELY,
        onset=spread.first,
        evidence=evidence,
        fix="give both the same shape: `prediction.squeeze(1)` or `target.unsqueeze(1)`",
    )


def _relative_spread(facts: Facts, function: str) -> float | None:
    """Return the final spread of predictions over that of targets, or None if unknown."""
    spread, width = readings(facts, OUTPUT_SPREAD, function), last(facts, TARGET_STD, function)
    if not len(spread) or not width:
        return None
    return float(np.median(spread[-max(len(spread) // 4, 1) :])) / width
