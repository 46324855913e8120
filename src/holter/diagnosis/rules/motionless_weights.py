"""No weight was changed by any update, though gradients arrived."""

from collections.abc import Iterator

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
def motionless_weights(facts: Facts, *, min_samples: int = 3) -> Iterator[Verdict]:
    """No weight was changed by any update, though gradients arrived.

    ## What it does
    Compares the trainable parameters before and after `optimizer.step()` on sampled steps, bit
    for bit. It speaks when not one element of one parameter changed in any sample, there were at
    least `min_samples` of them, and some of these parameters got gradients that were not zero.
    Frozen parameters do not count; neither do steps that a GradScaler skipped.

    ## Why it matters
    The model after training is the model before it. The loss may still wander from batch to batch
    and look like slow learning.

    ## What to do
    If the weights are bfloat16 or float16, each update may be rounded away: one under 1/512 of a
    bfloat16 weight is lost. Keep the weights in float32 and use autocast, or use an optimizer with
    stochastic rounding. Otherwise print the learning rate, and see that the optimizer holds these
    very parameters and not copies made before a move, a wrap or a compile.

    ## When it is wrong
    While a learning rate is held at 0 on purpose, as in a first phase that only warms up the
    optimizer's state, the weights do stand still. An optimizer that gathers several calls of
    `step()` before it updates is seen between its updates; raise `min_samples` there.

    ## How to confirm
    - Keep `before = [p.clone() for p in model.parameters()]` over one `optimizer.step()` and
      compare with `torch.equal`.
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
            f"{len(sampled)} updates were sampled; it takes {min_samples}"
        )
        return
    gradients = nonzero_gradients(facts, watched, enough=1)
    driven = [name for name in facts.run[PARAMETER_TRAINABLE] if gradients.get(name)]
    if not driven:
        yield motionless_weights.not_examined("no gradient of a sampled parameter differs from 0")
        return
    first, last = min(sampled), max(sampled)
    yield motionless_weights.finding(
        f"no element of {some(driven)} changed in {len(sampled)} sampled steps ({first} to {last})"
        " though gradients arrived",
        confidence=Confidence.CERTAIN,
        onset=first,
        evidence=(
            Evidence(
                UPDATE_UNCHANGED_FRACTION,
                (first, last),
                f"100 % of the elements unchanged in all {len(sampled)} samples of"
                f" {len(driven)} parameters",
                driven[0],
            ),
            Evidence(GRAD_NORM, (first, last), "gradients that are not zero arrived", driven[0]),
        ),
        fix="keep the weights in float32 (autocast for speed) if they are bfloat16 or float16;"
        " else see that the optimizer's learning rate is not 0 and that it holds these parameters",
    )


def _median_ratio(facts: Facts, first: int, last: int) -> str:
    if UPDATE_RATIO not in facts.run:
        return ""
    rows = facts.run[UPDATE_RATIO].rows(first, last)
    ratios = rows.values[rows.present & np.isfinite(rows.values) & (rows.values > 0)]
    return f"; median update ratio {np.median(ratios):.1e}" if len(ratios) else ""
