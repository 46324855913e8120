"""The training loss became NaN or infinite."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import number, of
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.format import Floats
from holter.record.signals import LOSS

_BEFORE = 20  # losses before the first bad one that are described


@exception
def skipped_by_scaler(facts: Facts, loss: Series, max_skipped: float) -> str | None:
    """GradScaler skipped every such step, so no weight changed."""
    bad = loss.steps[~np.isfinite(loss.values)]
    if not np.isin(bad, facts.skipped_steps).all() or len(bad) > max_skipped * len(loss):
        return None
    return (
        f"{len(bad)} of {len(loss)} losses are not finite; {facts.skipped_by} skipped these steps"
    )


@exception
def discarded_by_script(facts: Facts, loss: Series, _: float) -> str | None:
    """The script discarded the gradients of these losses, so they changed no weight."""
    bad = loss.steps[~np.isfinite(loss.values)]
    if not np.isin(bad, facts.discarded_steps).all():
        return None
    return f"{len(bad)} of {len(loss)} losses are not finite; the script discarded their gradients"


@rule(
    severity=Severity.ERROR,
    level=Level.NUMERICS,
    needs=(LOSS,),
    symptom=True,
    exceptions=(skipped_by_scaler, discarded_by_script),
)
def nonfinite_loss(
    facts: Facts,
    *,
    max_skipped: Annotated[float, "share of steps that GradScaler may skip for such a loss"] = 0.5,
    growth: Annotated[float, "times by which a loss that diverges grows just before"] = 10.0,
) -> Iterator[Verdict]:
    """The training loss became NaN or infinite.

    ## What it does
    Finds the first step whose loss is NaN or ±Inf and whose update was not skipped. Reports whether
    later losses are finite again, and whether the loss grew just before.

    ## Why it matters
    One non-finite loss makes every gradient non-finite, and the next `optimizer.step()` writes NaN
    into every weight. The model cannot recover from that; training has to resume from a checkpoint.

    ## Example
    ```python
    loss = -(y * p.log() + (1 - y) * (1 - p).log()).mean()                  # bad
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, y)  # good
    ```

    ## What to do
    Look at the batch and the operation of the first bad step: logarithms and divisions of
    something that can reach 0, `exp` of large logits, a mean over an empty selection. If norms
    grew in the steps before, lower the learning rate or clip the gradients.

    ## When it is wrong
    Losses that are infinite by design for single samples (CTC with impossible alignments) and whose
    gradients are zeroed inside the loss: the finding then says that later losses are finite.

    ## How to confirm
    - `holter try replay RUN` repeats the last steps and names operation, line and sample.
    - Repeat the run with a tenth of the learning rate: if the step survives, the update was too
      large; if not, look at the batch.
    """
    for owner, loss in facts.run[LOSS].items():
        bad = ~np.isfinite(loss.values)
        if not bad.any():
            yield nonfinite_loss.clear(f"all {len(loss)} recorded losses are finite")
            continue
        excuse = nonfinite_loss.excused(facts, loss, max_skipped)
        if excuse is not None:
            yield excuse
            continue
        used = bad & ~np.isin(loss.steps, facts.skipped_steps)
        at = int((used if used.any() else bad).argmax())
        step, value = int(loss.steps[at]), float(loss.values[at])
        later = int(np.isfinite(loss.values[at:]).sum())
        after = f"{later} later losses are finite" if later else "no later loss is finite"
        before, fix = _before(loss.values[:at], step, growth)
        if not used.any():
            fix = "compute the loss in float32: `criterion(logits.float(), y)`, or use bfloat16"
        yield nonfinite_loss.finding(
            f"the loss{of(owner)} is {number(value)} at step {step}; {after}",
            confidence=Confidence.CERTAIN,
            onset=step,
            evidence=(
                Evidence(
                    LOSS,
                    (max(step - _BEFORE, 0), step),
                    f"{int(bad.sum())} of {len(loss)} losses are not finite; {before}",
                    owner,
                ),
            ),
            fix=fix,
        )


def _before(losses: Floats, step: int, growth: float) -> tuple[str, str]:
    """Describe what preceded the first bad loss, and what to do about it."""
    recent = losses[np.isfinite(losses)][-_BEFORE:]
    if not len(recent):
        says = "none before it was finite"
        fix = "check the first batch with `torch.isfinite`, then the operations that use it"
        return says, fix
    last, lowest = float(recent[-1]), float(np.abs(recent).min())
    if last > growth * max(lowest, 1e-30) and (np.diff(recent[-3:]) > 0).all():
        says = f"it grew from {lowest:.3g} to {last:.3g} within the {len(recent)} losses before"
        fix = (
            "divide the learning rate by 10, or clip before `optimizer.step()`:"
            " `clip_grad_norm_(model.parameters(), 1.0)`"
        )
        return says, fix
    fix = (
        f"run `holter try replay` for the operation that fails at step {step}; resume from a"
        " checkpoint before it"
    )
    return f"the loss just before was {last:.3g}", fix
