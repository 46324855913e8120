"""A running average of the weights is still near the weights at the start."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent, portion
from holter.record.events import CopyCompared
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS


@rule(severity=Severity.WARNING, level=Level.HYPERPARAMETER, needs=(LOSS,), preview=True)
def lagging_average(
    facts: Facts,
    *,
    min_steps: Annotated[int, "steps needed"] = 50,
    max_way: Annotated[float, "share of the way from the start that is too little"] = 0.2,
    max_moved: Annotated[float, "distance from the start, over that of the model"] = 0.5,
    min_written: Annotated[float, "writes to the copy per step that make it an average"] = 0.5,
) -> Iterator[Verdict]:
    """A running average of the weights is still near the weights at the start.

    ## What it does
    When the script has ended, `holter run` looks for copies of the trained model and compares some
    elements of their weights with those of the model, now and at its first step. It reports a copy
    that is written to at about every step, and has made only a small part of the way.

    ## Why it matters
    An average with a decay of 0.9999 looks back 10,000 steps. In a run of 500 steps it consists of
    initial weights, nearly: samples and validation figures that are made with it are those of an
    untrained model, while the training loss is fine.

    ## Example
    ```python
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9999))   # bad
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))     # good
    ```

    ## What to do
    Choose a decay whose `1 / (1 - decay)` is a small part of the number of steps, or let it grow:
    `min(decay, (1 + step) / (10 + step))`.

    ## When it is wrong
    A target network or teacher that is meant to change slowly, in a run that is cut short.

    ## How to confirm
    - Evaluate the model itself beside its average.
    """
    copies = [event.what for event in facts.run.events_of(CopyCompared)]
    if not copies or facts.run.steps < min_steps:
        yield lagging_average.not_examined(
            "no copy of the model was left by the script"
            if not copies
            else f"{facts.run.steps} of the {min_steps} steps needed"
        )
        return
    last = facts.run.steps - 1
    for copy in copies:
        is_average = copy.written >= min_written * facts.run.steps
        measured = (
            f"a copy of {copy.model} is {portion(copy.behind)} of the way of the training behind it"
        )
        is_near_start = 0 < copy.moved <= max_moved  # another model of that class is anywhere
        if not is_average or not is_near_start or copy.behind < 1 - max_way:
            yield lagging_average.clear(measured)
            continue
        yield lagging_average.finding(
            f"{measured}, after {facts.run.steps} steps in which it was averaged: it holds initial"
            " weights mostly",
            confidence=Confidence.HINT,
            onset=0,
            evidence=(
                Evidence(
                    LOSS,
                    (0, last),
                    f"the copy has moved by {percent(copy.moved)} of what the model has",
                ),
            ),
            fix="lower the decay so that `1 / (1 - decay)` is a small part of the steps, or use"
            " `min(decay, (1 + step) / (10 + step))`",
        )
