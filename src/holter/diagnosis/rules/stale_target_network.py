"""The target network still has its initial weights."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent, portion
from holter.record.events import CopyCompared
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS_LARGEST_OUTPUT


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(LOSS_LARGEST_OUTPUT,),
    preview=True,
)
def stale_target_network(
    facts: Facts,
    *,
    min_readings: Annotated[int, "sampled steps of a regression on one output"] = 8,
    min_steps: Annotated[int, "steps of training needed"] = 200,
    max_way: Annotated[float, "share of the distance from the start that counts as none"] = 0.1,
    max_written: Annotated[int, "writes to a copy that belong to its creation"] = 3,
) -> Iterator[Verdict]:
    """The target network still has its initial weights.

    ## What it does
    Looks at runs whose loss is a regression on one selected output per sample, as in Q-learning. It
    reports a copy of the model, found after the script has ended, that still has the initial
    weights, was never written to after its creation, and no other copy follows the model.

    ## Why it matters
    The targets are rewards plus the values of the next states according to that copy. If it is
    never synchronised, these values are random: the loss falls, because fixed targets are easy to
    fit, but the policy learns nothing beyond the next reward.

    ## Example
    ```python
    if step % (10 * steps) == 0: target.load_state_dict(model.state_dict())   # bad
    if step % 100 == 0: target.load_state_dict(model.state_dict())            # good
    ```

    ## What to do
    Copy the weights of the model to the copy every few dozen to few hundred updates, or average
    them at every step: `p_target.lerp_(p, 0.005)`.

    ## When it is wrong
    The copy is a fixed reference, and no targets are computed with it.

    ## How to confirm
    - Print the weight difference of both networks before and after the synchronisation.
    """
    chosen = facts.run[LOSS_LARGEST_OUTPUT].get("")
    copies = [event.what for event in facts.run.events_of(CopyCompared)]
    if not copies or chosen is None or len(chosen) < min_readings or facts.run.steps < min_steps:
        yield stale_target_network.not_examined(
            "the script left no copy of the model"
            if not copies
            else f"{facts.run.steps} steps, {0 if chosen is None else len(chosen)} of them sampled"
        )
        return
    stale = [
        copy
        for copy in copies
        if copy.moved <= max_way and copy.behind >= 1 - max_way and copy.written <= max_written
    ]
    if len(stale) < len(copies):  # beside one that follows the model, it is a reference
        nearest = min(copies, key=lambda copy: copy.behind)
        yield stale_target_network.clear(
            f"a copy of {nearest.model} lags behind it by {portion(nearest.behind)} of the distance"
            " that the weights moved"
        )
        return
    yield stale_target_network.finding(
        f"the copy of {stale[0].model} has the initial weights after {facts.run.steps} steps, and"
        " the loss is a regression on one output of each sample, as in Q-learning",
        confidence=Confidence.HINT,
        onset=0,
        evidence=(
            Evidence(
                LOSS_LARGEST_OUTPUT,
                (chosen.first, chosen.last),
                f"a regression on one output on {len(chosen)} sampled steps; the copy lags behind"
                f" the model by {percent(stale[0].behind)} of the distance that it moved",
            ),
        ),
        fix="synchronise it: `target.load_state_dict(model.state_dict())` every 100 updates",
    )
