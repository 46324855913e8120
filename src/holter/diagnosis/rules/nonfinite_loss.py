"""The training loss became NaN or infinite."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.format import Floats
from holter.record.signals import LOSS


@rule(
    severity=Severity.ERROR,
    level=Level.NUMERICS,
    needs=(LOSS,),
    symptom=True,
)
def nonfinite_loss(facts: Facts) -> Iterator[Verdict]:
    """The training loss became NaN or infinite.

    ## What it does
    Looks for the first step whose loss is NaN or ±Inf, and tells whether the loss came back.
    Steps that a GradScaler skipped are left out: nothing was learned from them. So are rare ones
    whose gradients the script itself threw away, which is noted: another backward came before the
    update, and all gradients that the optimizer ever got are finite.

    ## Why it matters
    One non-finite loss makes every gradient non-finite, and the next `optimizer.step()` writes
    NaN into every weight. From then on the model is lost; only a checkpoint brings it back.

    ## What to do
    Look at the batch and the operation of the first bad step: logarithms and divisions of
    something that can reach 0, `exp` of large logits, a mean over an empty selection. If norms
    grew in the steps before, lower the learning rate or clip the gradients.

    ## When it is wrong
    Losses that are infinite by design for single samples (CTC with impossible alignments) and are
    kept from the weights in a way that is not seen: the finding then says that the loss came back.

    ## How to confirm
    - Run `holter try replay`: it makes the last steps again, and names operation, line and sample.
    - Repeat the run with a tenth of the learning rate: if the step survives, the update was too
      large; if not, look at the batch.
    """
    skipped, discarded = facts.skipped_steps, facts.discarded_steps
    for owner, loss in facts.run[LOSS].items():
        bad = ~np.isfinite(loss.values) & ~np.isin(loss.steps, np.r_[skipped, discarded])
        if not bad.any() and len(discarded):
            said = (
                f"{len(discarded)} of {len(loss)} losses are not finite, and the script threw their"
                " gradients away"
            )
            yield nonfinite_loss.normal(said)
            yield nonfinite_loss.clear(said)
            continue
        if not bad.any():
            yield nonfinite_loss.clear(f"all {len(loss)} recorded losses are finite")
            continue
        at = int(bad.argmax())
        first, value = int(loss.steps[at]), float(loss.values[at])
        back = int(np.isfinite(loss.values[at:]).sum())
        came_back = f", and comes back {back} times" if back else ", and never comes back"
        before, fix = _before(loss.values[:at])
        yield nonfinite_loss.finding(
            f"loss{of(owner)} is {value} at step {first}{came_back}",
            confidence=Confidence.CERTAIN,
            onset=first,
            evidence=(
                Evidence(
                    LOSS,
                    (max(first - 20, 0), first),
                    f"{int(bad.sum())} of {len(loss)} losses are not finite; {before}",
                    owner,
                ),
            ),
            fix=fix.format(step=first),
        )


def _before(losses: Floats) -> tuple[str, str]:
    """What led up to the first bad loss, and what to do about that."""
    recent = losses[np.isfinite(losses)][-20:]
    if not len(recent):
        return (
            "the very first is already bad",
            "look at the first batch for NaN and Inf, then at the operations of the first forward",
        )
    last, lowest = float(recent[-1]), float(np.abs(recent).min())
    if last > 10 * max(lowest, 1e-30) and (np.diff(recent[-3:]) > 0).all():
        return (
            f"it grew from {lowest:.4g} to {last:.4g} within {len(recent)} steps before",
            "divide the learning rate by ten, or clip gradients: the loss grew step by step before",
        )
    return (
        f"the last before was {last:.4g}: it came without warning",
        "look at the batch and the operations of step {step}; resume from a checkpoint before it",
    )
