"""The loss of an old task rises while the model learns a new one."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.facts.validation import scatter
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import number
from holter.record import Series
from holter.record.evaluations import ALSO
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, METRIC_LOGGED

_EPOCHS = 6  # from which scatter can be told from a trend


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(LOSS, METRIC_LOGGED),
    preview=True,
)
def forgotten_task(
    facts: Facts,
    *,
    min_rise: Annotated[float, "relative rise of the old task's loss that is reported"] = 0.5,
    floor: Annotated[float, "share of the initial training loss below which a loss is small"] = 0.1,
    min_steps: Annotated[int, "training steps needed"] = 20,
) -> Iterator[Verdict]:
    """The loss of an old task rises while the model learns a new one.

    ## What it does
    Compares the loss of each task of `watch(also=...)` before the first step with that at the end.
    A rise by half is reported if it exceeds the scatter between epochs; for a loss near zero, a
    rise by a share of the initial training loss.

    ## Why it matters
    Training on new data only overwrites what the model knew. The curves of the new task do not show
    it.

    ## Example
    ```python
    for batch in new_loader: step(batch)                                      # bad
    for new, old in zip(new_loader, cycle(old_loader)): step(new, old)        # good
    ```

    ## What to do
    Mix samples of the old task into the batches, lower the learning rate, train fewer layers or an
    adapter (LoRA), or penalise the distance from the old weights. Stop at the epoch in which both
    losses are acceptable.

    ## When it is wrong
    The old task is abandoned on purpose, or its function returns a metric for which higher is
    better: return a loss.

    ## How to confirm
    - Evaluate the checkpoint from before the training on the old task's data.
    - Repeat the training with a tenth of the learning rate: the old loss must rise less.
    """
    tasks = {
        owner.removeprefix(ALSO): series
        for owner, series in facts.run[METRIC_LOGGED].items()
        if owner.startswith(ALSO) and len(series)
    }
    if not tasks:
        yield forgotten_task.not_examined("no old task was given: `holter.watch(..., also={...})`")
        return
    losses = [series.values for series in facts.run[LOSS].values() if len(series)]
    initial = float(np.abs(losses[0][:5]).mean()) if losses else 0.0
    for name, series in tasks.items():
        if facts.run.steps < min_steps or len(series) < 2 or not np.isfinite(series.values).all():
            yield forgotten_task.not_examined(
                f"{len(series)} finite losses of {name} in {facts.run.steps} steps"
            )
            continue
        yield _judge(name, series, min_rise, floor * initial)


def _judge(name: str, series: Series, min_rise: float, small: float) -> Verdict:
    values = series.values.astype(np.float64)
    first, late = float(values[0]), float(values[-1])
    limit = first + max(min_rise * max(abs(first), small), 3 * _scatter(values))
    says = f"the loss of {name} was {number(first)} before the first step and is {number(late)}"
    if late <= limit:
        return forgotten_task.clear(says)
    onset = int(series.steps[int((values > limit).argmax())])
    return forgotten_task.finding(
        f"{says} at the end (step {series.last}); it rose beyond {number(limit)} by step {onset}",
        confidence=Confidence.LIKELY,
        onset=onset,
        evidence=(
            Evidence(
                METRIC_LOGGED,
                (int(series.steps[0]), series.last),
                f"{number(first)} initially, {number(late)} at the end",
                f"{ALSO}{name}",
            ),
        ),
        fix="mix samples of the old task into each batch, or lower the learning rate",
    )


def _scatter(values: Values) -> float:
    """Return the scatter from epoch to epoch, or 0 where there are too few to tell."""
    return scatter(values) if len(values) >= _EPOCHS else 0.0
