"""No update changed any weight, although gradients were nonzero."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.membership import latest, nonzero_gradients
from holter.diagnosis.facts.windows import windows
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    GRAD_NORM,
    PARAMETER_TRAINABLE,
    UPDATE_RATIO,
    UPDATE_UNCHANGED_FRACTION,
)


@rule(
    severity=Severity.ERROR,
    level=Level.PROCEDURE,
    needs=(UPDATE_UNCHANGED_FRACTION, GRAD_NORM, PARAMETER_TRAINABLE),
    symptom=True,
)
def motionless_weights(
    facts: Facts, *, min_samples: Annotated[int, "sampled updates needed"] = 3
) -> Iterator[Verdict]:
    """No update changed any weight, although gradients were nonzero.

    ## What it does
    Compares the trainable parameters before and after `optimizer.step()` on sampled steps, bit for
    bit. It reports if no element of any parameter changed in any sample although some of them had
    nonzero gradients. Frozen parameters and steps that a GradScaler skipped do not count.

    ## Why it matters
    Training does not change the model. The loss still varies from batch to batch, which may look
    like slow learning.

    ## Example
    ```python
    optimizer = SGD(Net().parameters(), lr=0.1); model = Net()    # bad
    model = Net(); optimizer = SGD(model.parameters(), lr=0.1)    # good
    ```

    ## What to do
    If the weights are bfloat16 or float16, each update may be rounded away: keep the weights in
    float32 and use autocast, or use an optimizer with stochastic rounding. Otherwise print the
    learning rate, and check that the optimizer holds these parameters and not copies from before
    the model was moved, wrapped or compiled.

    ## When it is wrong
    The learning rate may be 0 on purpose, as in a first phase that only fills the optimizer's
    state. An optimizer that accumulates several calls of `step()` before it updates is sampled
    between its updates; raise `min_samples` there.

    ## How to confirm
    - Save `before = [p.clone() for p in model.parameters()]`, call `optimizer.step()` and compare
      with `torch.equal`.
    - Repeat a few steps with `model.float()`: if the weights move, the updates were rounded away.
    """
    trainable = {name for name, (value, _) in latest(facts, PARAMETER_TRAINABLE).items() if value}
    skipped = facts.skipped_steps
    samples: dict[str, int] = dict.fromkeys(trainable, 0)
    sampled: list[int] = []
    for rows in windows(facts, UPDATE_UNCHANGED_FRACTION):
        columns = [column for column, owner in enumerate(rows.owners) if owner in trainable]
        counted = rows.present[:, columns] & ~np.isin(rows.steps, skipped)[:, None]
        moved = (counted & (rows.values[:, columns] < 1)).any(axis=0)
        if moved.any():
            ratio = _median_ratio(facts, int(rows.steps[0]), int(rows.steps[-1]))
            yield motionless_weights.clear(
                f"{int(moved.sum())} of {len(trainable)} trainable parameters moved{ratio}"
            )
            return
        for column, count in zip(columns, counted.sum(axis=0), strict=True):
            samples[rows.owners[column]] += int(count)
        sampled += rows.steps[counted.any(axis=1)].tolist()

    watched = {name: 0 for name, count in samples.items() if count >= min_samples}
    if not watched:
        yield motionless_weights.not_examined(
            f"{len(sampled)} of the {min_samples} sampled updates needed"
        )
        return
    gradients = nonzero_gradients(facts, watched, enough=1)
    driven = [name for name in facts.run[PARAMETER_TRAINABLE] if gradients.get(name)]
    if not driven:
        yield motionless_weights.not_examined("the gradients of all sampled parameters are zero")
        return
    first, last = min(sampled), max(sampled)
    yield motionless_weights.finding(
        f"no element of {some(driven)} changed in {len(sampled)} sampled steps ({first} to {last})"
        " although their gradients are nonzero",
        confidence=Confidence.CERTAIN,
        onset=first,
        evidence=(
            Evidence(
                UPDATE_UNCHANGED_FRACTION,
                (first, last),
                f"100 % of the elements unchanged in {len(sampled)} samples of {len(driven)}"
                " parameters",
                driven[0],
            ),
            Evidence(GRAD_NORM, (first, last), "nonzero gradients", driven[0]),
        ),
        fix="keep bfloat16 and float16 weights in float32 and use `torch.autocast`; otherwise check"
        " that the optimizer holds these parameters and that its learning rate is not 0",
    )


def _median_ratio(facts: Facts, first: int, last: int) -> str:
    if UPDATE_RATIO not in facts.run:
        return ""
    rows = facts.run[UPDATE_RATIO].rows(first, last)
    ratios = rows.values[rows.present & np.isfinite(rows.values) & (rows.values > 0)]
    return f"; median relative update {np.median(ratios):.1g}" if len(ratios) else ""
