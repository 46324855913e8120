"""A running average of the weights is still near the initial weights."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent, portion
from holter.record.events import CodePattern, CopyCompared
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "slow average": Mistake(
        "`{code}` averages weights with a decay that is too slow for the run (decay, steps:"
        " {subject}): the average consists mostly of initial weights",
        "lower the decay so that `1 / (1 - decay)` is a small part of the steps, or use"
        " `min(decay, (1 + step) / (10 + step))`",
    ),
    "average without buffers": Mistake(
        "`{code}` averages only parameters, and `{subject}` is evaluated: the running statistics"
        " of its BatchNorm layers are still the initial ones",
        "copy the buffers as well: `for a, b in zip(ema.buffers(), model.buffers()): a.copy_(b)`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.HYPERPARAMETER, needs=(LOSS,), preview=True)
def lagging_average(
    facts: Facts,
    *,
    min_steps: Annotated[int, "steps needed"] = 50,
    max_way: Annotated[float, "share of the distance from the start that is too small"] = 0.2,
    max_moved: Annotated[float, "distance from the start, over that of the model"] = 0.5,
    min_written: Annotated[float, "writes to the copy per step that make it an average"] = 0.5,
) -> Iterator[Verdict]:
    """A running average of the weights is still near the initial weights.

    ## What it does
    After the script has ended, `holter run` looks for copies of the trained model and compares some
    elements of their weights with the initial and final weights of the model. It reports a copy
    that is updated at about every step but has moved only a small part of the distance. In the
    source, it reports a decay that is too slow for the configured number of steps, and an average
    that is evaluated with the initial buffers of its BatchNorm layers.

    ## Why it matters
    An average with a decay of 0.9999 covers 10,000 steps. After 500 steps it consists almost
    entirely of initial weights: samples and validation metrics computed with it are those of an
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
    A target network or teacher that should change slowly, in a short run.

    ## How to confirm
    - Compare the evaluation of the model with that of its average.
    """
    if any(event.what.pattern in _MISTAKES for event in facts.run.events_of(CodePattern)):
        yield from concluded(lagging_average, facts, _MISTAKES)
        return
    copies = [event.what for event in facts.run.events_of(CopyCompared)]
    if not copies or facts.run.steps < min_steps:
        yield lagging_average.not_examined(
            "the script left no copy of the model"
            if not copies
            else f"{facts.run.steps} of the {min_steps} steps needed"
        )
        return
    last = facts.run.steps - 1
    for copy in copies:
        is_average = copy.written >= min_written * facts.run.steps
        measured = (
            f"a copy of {copy.model} lags behind it by {portion(copy.behind)} of the distance"
            " that the weights moved"
        )
        is_near_start = 0 < copy.moved <= max_moved  # another model of that class is anywhere
        if not is_average or not is_near_start or copy.behind < 1 - max_way:
            yield lagging_average.clear(measured)
            continue
        yield lagging_average.finding(
            f"{measured}, after {facts.run.steps} steps in which it was averaged: it still"
            " consists mostly of the initial weights",
            confidence=Confidence.HINT,
            onset=0,
            evidence=(
                Evidence(
                    LOSS,
                    (0, last),
                    f"the copy has moved {percent(copy.moved)} of the distance of the model",
                ),
            ),
            fix="lower the decay so that `1 / (1 - decay)` is a small part of the steps, or use"
            " `min(decay, (1 + step) / (10 + step))`",
        )
